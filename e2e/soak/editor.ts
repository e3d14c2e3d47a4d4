import { setTimeout as delay } from 'node:timers/promises'
import { ApiError } from '../lib/control-plane/api-client.ts'
import type { ControlledEdge } from '../lib/edge/controlled-edge.ts'
import { type Answer, Ledger } from './ledger.ts'

const pauseMs = 500
/** How often a change creates a device instead of renaming one. */
const creationsEvery = 20
const refusalsKept = 5

/** Changes an organization's devices all the time, through any API process, and keeps what was promised. */
export class Editor {
  readonly edge: ControlledEdge
  readonly ledger = new Ledger()
  /** Sentences for changes that were refused without a reason. */
  readonly refusals: string[] = []
  readonly #apiUrls: string[]
  readonly #random: () => number
  #count = 0

  constructor(edge: ControlledEdge, apiUrls: string[], random: () => number) {
    this.edge = edge
    this.#apiUrls = apiUrls
    this.#random = random
  }

  async runUntil(ended: AbortSignal): Promise<void> {
    while (!ended.aborted) {
      this.#count += 1
      if (this.#count % creationsEvery === 0) await this.#create()
      else await this.#rename()
      await delay(pauseMs, undefined, { signal: ended }).catch(() => undefined)
    }
  }

  async #rename(): Promise<void> {
    const deviceId = this.#pick(this.edge.tenant.deviceIds)
    const api = this.edge.api.at(this.#pick(this.#apiUrls))
    const read = await api.query<{ revision: number }>('device.get', { deviceId }).catch(() => null)
    if (!read) return
    const name = `renamed-${this.#count}`
    const asked = api.mutate('device.update', { deviceId, revision: read.revision, name })
    this.ledger.note(deviceId, name, await this.#answerOf(asked))
  }

  async #create(): Promise<void> {
    const api = this.edge.api.at(this.#pick(this.#apiUrls))
    const { collectionId } = this.edge.tenant
    const name = `made-${this.#count}`
    const number = this.#count.toString(16).padStart(6, '0')
    const mac = ['02:bf:01', ...(number.match(/../g) ?? [])].join(':')
    const asked = api.mutate('device.create', { collectionId, name, mac })
    this.ledger.note(mac, name, await this.#answerOf(asked))
  }

  #pick<T>(items: T[]): T {
    const item = items[Math.floor(this.#random() * items.length)]
    if (item === undefined) throw new Error('there is nothing to pick from')
    return item
  }

  /** Only an answer of the API itself proves that nothing was done. */
  async #answerOf(asked: Promise<unknown>): Promise<Answer> {
    try {
      await asked
      return 'acknowledged'
    } catch (error) {
      if (!(error instanceof ApiError) || error.status >= 500) return 'unknown'
      // A change in doubt may have come after the revision was read.
      if (error.status !== 409 && this.refusals.length < refusalsKept) this.refusals.push(error.message)
      return 'refused'
    }
  }
}
