import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { bootWith } from '../../test/edge-client.ts'
import { startTestApi, type TestApi } from '../../test/test-api.ts'
import { query } from '../../test/test-client.ts'
import { TestSite } from '../../test/test-site.ts'
import { numberAllEvents } from './number-events.ts'
import type { EventView } from './schema.ts'

let api: TestApi
let beside: TestApi
let site: TestSite
let round = 0
const clients: pg.Client[] = []

beforeAll(async () => {
  api = await startTestApi()
  beside = await startTestApi({ beside: api })
})
beforeEach(async () => {
  round += 1
  site = await TestSite.open(api, `numbers-${round}`, 'owner')
})
afterAll(async () => {
  await Promise.all(clients.map((client) => client.end()))
  await beside.close()
  await api.close()
})

interface Page {
  items: EventView[]
  resumeCursor: string
}

/** Continues after `cursor`, in one of the processes. */
const listAfter = (cursor: string | null, process = api) =>
  query<Page>(process, site.cookie, 'event.list', { sort: 'number', limit: 100, cursor })

/** A connection of its own, whose transaction stays open as long as a test wants. */
async function openTransaction(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: api.databaseUrl })
  clients.push(client)
  await client.connect()
  await client.query('begin')
  return client
}

/** Writes an event as the API does, in a transaction that may commit much later. */
async function writeEvent(client: pg.Client, name: string): Promise<void> {
  const { organizationId } = site.tenant
  await client.query(
    `insert into webhook_event (organization_id, id, type, subject, payload, created_at)
    values ($1, $2, 'boot.failed', $3, $4, clock_timestamp())`,
    [organizationId, randomUUID(), name, { data: { name } }],
  )
}

const namesOf = ({ items }: Page) => items.map(({ data }) => data.name)
const failure = { kind: 'failed', phase: 'nbp', cause: 'tftp_timeout', text: 'no answer' } as const

test.each([
  ['in their order', [0, 1, 2, 3, 4, 5]],
  ['in the opposite order', [5, 4, 3, 2, 1, 0]],
  ['in any order', [3, 0, 5, 1, 4, 2]],
])('transactions that commit %s: a reader gets each event once, as soon as it is there', async (_name, order) => {
  const writers = await Promise.all(order.map(() => openTransaction()))
  for (const part of ['first', 'second'])
    for (const [index, writer] of writers.entries()) await writeEvent(writer, `${part} of ${index}`)
  let cursor: string | null = null
  const numbers: number[] = []
  for (const index of order) {
    await writers[index]?.query('commit')
    const page: Page = await listAfter(cursor)
    // Of one transaction, they may have one instant.
    expect(namesOf(page).sort()).toEqual([`first of ${index}`, `second of ${index}`])
    numbers.push(...page.items.map(({ number }) => number))
    cursor = page.resumeCursor
  }
  expect(numbers).toEqual(Array.from({ length: 12 }, (_, index) => index + 1))
  expect((await listAfter(null)).items.map(({ number }) => number)).toEqual(numbers)
})

test('an event of a transaction that is rolled back takes no number', async () => {
  const [kept, dropped] = [await openTransaction(), await openTransaction()]
  await writeEvent(dropped, 'dropped')
  await writeEvent(kept, 'kept')
  await dropped.query('rollback')
  await kept.query('commit')
  const { items } = await listAfter(null)
  expect(items.map(({ number, data }) => [number, data.name])).toEqual([[1, 'kept']])
})

/** Numbers what there is and holds the lock, like a request that has not ended yet. */
async function numberAndWait(): Promise<pg.Client> {
  const client = await openTransaction()
  await client.query('select number_events($1, 1000)', [site.tenant.organizationId])
  return client
}

test('whoever reports waits for no numbering: neither a new event nor one that is being numbered', async () => {
  const boot = bootWith({ id: randomUUID(), mac: site.mac, outcome: failure })
  await site.report(boot)
  const numbering = await numberAndWait()
  await site.report({ ...boot, revision: 2 })
  await site.report(bootWith({ id: randomUUID(), mac: site.tenant.macs[1] ?? '', outcome: failure }))
  await numbering.query('commit')
  expect((await listAfter(null)).items.map(({ number }) => number)).toEqual([1, 2])
})

test('a reader that comes while numbers are given waits for them, and skips none', async () => {
  const [first, second] = [await openTransaction(), await openTransaction()]
  await writeEvent(first, 'first')
  await first.query('commit')
  const numbering = await numberAndWait()
  await writeEvent(second, 'second')
  await second.query('commit')
  const waiting = listAfter(null, beside)
  while (!(await isReaderWaiting()));
  await numbering.query('commit')
  expect(namesOf(await waiting)).toEqual(['first', 'second'])
})

async function isReaderWaiting(): Promise<boolean> {
  const rows = await api.db.$queryRaw<object[]>`
    select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
      and query like '%number_events%'`
  return rows.length > 0
}

test('readers of two processes each see everything once while edges report', async () => {
  const macs = site.tenant.macs
  const wanted = 40
  const follow = async (process: TestApi) => {
    const seen: EventView[] = []
    let cursor: string | null = null
    while (seen.length < wanted) {
      const page: Page = await listAfter(cursor, process)
      seen.push(...page.items)
      cursor = page.resumeCursor
    }
    return seen
  }
  const report = async (from: number) => {
    const edge = await site.enrolEdge()
    for (let index = 0; index < wanted / 2; index += 1) {
      const boot = bootWith({ id: randomUUID(), mac: macs[(from + index) % macs.length] ?? '', outcome: failure })
      await site.send([{ type: 'boot', boot }], edge)
    }
  }
  const [one, other] = await Promise.all([follow(api), follow(beside), report(0), report(3)])
  expect(one.map(({ number }) => number)).toEqual(Array.from({ length: wanted }, (_, index) => index + 1))
  expect(other).toEqual(one)
  expect(new Set(one.map(({ id }) => id)).size).toBe(wanted)
})

test('the job numbers the events of all organizations, however many wait', async () => {
  const neighbour = await site.other('owner')
  const count = 2_003
  await api.db.$executeRaw`
    insert into webhook_event (organization_id, id, type, subject, payload, created_at)
    select ${site.tenant.organizationId}::uuid, gen_random_uuid(), 'boot.failed', n::text, '{}', now()
    from generate_series(1, ${count}) as n`
  await neighbour.report(bootWith({ id: randomUUID(), mac: neighbour.mac, outcome: failure }))
  await numberAllEvents({ db: api.serverDb })
  const highest = async (organizationId: string) => {
    const { _max, _count } = await api.db.webhookEvent.aggregate({
      where: { organizationId },
      _max: { number: true },
      _count: { number: true },
    })
    return [Number(_max.number), _count.number]
  }
  expect(await highest(site.tenant.organizationId)).toEqual([count, count])
  expect(await highest(neighbour.tenant.organizationId)).toEqual([1, 1])
})
