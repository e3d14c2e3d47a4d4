import { EdgeClient } from '../../../apps/api/test/edge-client.ts'
import { makeJoinToken } from '../../../apps/api/test/test-tenant.ts'
import { createDb } from '../../../packages/db/src/index.ts'

const waitMs = 25_000
/** As the edge's: several sites of a farm are opened at once. */
const openedAtOnce = 8

/** Edges of other sites of the same farm, each with its long poll open all the time, as the edge's own program does it. */
export class LongPolls {
  /** For each edge, when each of its states came. */
  #cameAtMs = []
  #loops = []
  #ended = new AbortController()
  #wake = () => {}

  static async open({ tenant, databaseUrl }, { count, url }) {
    const polls = new LongPolls()
    const db = createDb(databaseUrl)
    const clock = { now: new Date(), advance: () => {}, read: () => new Date() }
    try {
      const { organizationId, farmId, vdiskId } = tenant
      const addEdge = async (number) => {
        const place = { organizationId, farmId, name: `Site ${number}`, timeZone: 'Europe/Berlin' }
        const { id: siteId } = await db.site.create({ data: place })
        await db.collection.create({ data: { organizationId, siteId, name: 'Lab', vdiskId } })
        const token = await makeJoinToken({ db, clock }, { ...tenant, siteId })
        const edge = await EdgeClient.enrolled(url, token)
        const first = await edge.state('0.0', 0)
        polls.#follow(edge, pairOf(first.body))
      }
      for (let number = 0; number < count; number += openedAtOnce)
        await Promise.all(
          Array.from({ length: Math.min(openedAtOnce, count - number) }, (_, index) => addEdge(number + index)),
        )
    } finally {
      await db.$disconnect()
    }
    return polls
  }

  #follow(edge, first) {
    const came = []
    this.#cameAtMs.push(came)
    const follow = async () => {
      let pair = first
      while (!this.#ended.signal.aborted) {
        const answer = await edge.state(pair, waitMs, this.#ended.signal).catch((error) => {
          if (this.#ended.signal.aborted) return null
          throw error
        })
        if (answer?.status !== 200) continue
        came.push(performance.now())
        pair = pairOf(answer.body)
        this.#wake()
      }
    }
    this.#loops.push(follow())
  }

  /** Resolves when each has had `count` states since it was opened. */
  async untilAllHave(count) {
    while (this.#cameAtMs.some((came) => came.length < count))
      await new Promise((resolve) => {
        this.#wake = resolve
      })
  }

  /** Of all edges and changes: milliseconds from a change's answer to the edge's state. */
  timesAfter(changes) {
    return this.#cameAtMs.flatMap((came) => changes.map(({ answeredAtMs }, index) => came[index] - answeredAtMs))
  }

  close() {
    this.#ended.abort()
  }
}

function pairOf(body) {
  const { incarnation, counter } = JSON.parse(body.payload)
  return `${incarnation}.${counter}`
}
