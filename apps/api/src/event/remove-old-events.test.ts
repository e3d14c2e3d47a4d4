import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { bootWith } from '../../test/edge-client.ts'
import { useTestSite } from '../../test/test-site.ts'
import { dayMs } from '../rules/utc-day.ts'
import { eventsKeptDays, removeOldEvents } from './remove-old-events.ts'
import type { EventView } from './schema.ts'

const site = useTestSite('owner')

interface Page {
  items: EventView[]
  resumeCursor: string
}

const list = (input: object) => site().query<Page>('event.list', { sort: 'number', ...input })
const numbers = async (input: object = {}) => (await list(input)).items.map(({ number }) => number)
const remove = (keptMax?: number) => removeOldEvents({ db: site().api.serverDb, clock: site().api.clock.read }, keptMax)

async function fail(): Promise<void> {
  const outcome = { kind: 'failed', phase: 'nbp', cause: 'tftp_timeout', text: 'no answer' } as const
  await site().report(bootWith({ id: randomUUID(), mac: site().mac, outcome }))
}

const codeAfter = async (cursor: string) => (await site().tryQuery('event.list', { sort: 'number', cursor })).code

test('an event is kept for 30 days, and a cursor before removed ones is refused', async () => {
  await fail()
  const { resumeCursor: afterFirst } = await list({})
  await fail()
  const { resumeCursor: afterSecond } = await list({})
  site().api.clock.advance(10 * dayMs)
  await fail()
  site().api.clock.advance((eventsKeptDays - 10) * dayMs)
  await remove()
  expect(await numbers()).toEqual([1, 2, 3])
  site().api.clock.advance(1)
  await remove()
  expect(await numbers()).toEqual([3])
  expect(await codeAfter(afterFirst)).toBe('cursor_expired')
  expect(await numbers({ cursor: afterSecond })).toEqual([3])
})

test('numbers go on after all events are removed, and cursors at the end stay', async () => {
  await fail()
  const { resumeCursor } = await list({})
  site().api.clock.advance(eventsKeptDays * dayMs + 1)
  await remove()
  expect(await numbers()).toEqual([])
  await fail()
  expect(await numbers({ cursor: resumeCursor })).toEqual([2])
})

test('an organization has at most so many events: the oldest go first, with their messages', async () => {
  const other = await site().other('owner')
  const { organizationId } = site().tenant
  await site().mutate('webhook.create', { name: 'Chat', url: 'https://127.0.0.1:8443/', events: ['boot.failed'] })
  for (let count = 0; count < 5; count += 1) await fail()
  const { resumeCursor } = await list({ limit: 1 })
  expect(await numbers()).toEqual([1, 2, 3, 4, 5])
  await remove(3)
  expect(await numbers()).toEqual([3, 4, 5])
  expect(await codeAfter(resumeCursor)).toBe('cursor_expired')
  expect(await site().api.db.webhookDelivery.count({ where: { organizationId } })).toBe(3)
  expect(await other.query<Page>('event.list', {})).toMatchObject({ items: [] })
})

test('more than one batch is removed, and events that nobody has numbered, too', async () => {
  const { organizationId } = site().tenant
  await site().api.db.$executeRaw`
    insert into webhook_event (organization_id, id, type, subject, payload, created_at)
    select ${organizationId}::uuid, gen_random_uuid(), 'boot.failed', n::text, '{}', ${site().api.clock.now}
    from generate_series(1, 5003) as n`
  site().api.clock.advance(eventsKeptDays * dayMs + 1)
  await remove()
  expect(await site().api.db.webhookEvent.count({ where: { organizationId } })).toBe(0)
})
