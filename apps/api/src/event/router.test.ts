import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { bootWith, guestWith } from '../../test/edge-client.ts'
import { callRest } from '../../test/rest-client.ts'
import { query } from '../../test/test-client.ts'
import { useTestSite } from '../../test/test-site.ts'
import { sessionCookie } from '../../test/test-tenant.ts'
import { findSilentEdges } from '../edge/list-edges.ts'
import type { EventView } from './schema.ts'

const site = useTestSite('owner')

interface Page {
  items: EventView[]
  nextCursor: string | null
  resumeCursor: string
}

const list = (input: object = {}, cookie = site().cookie) => query<Page>(site().api, cookie, 'event.list', input)
const failure = { kind: 'failed', phase: 'nbp', cause: 'tftp_timeout', text: '<b>no answer</b>' } as const

/** The devices with these indexes fail to boot. @returns the ids of the boots */
async function fail(...indexes: number[]): Promise<string[]> {
  const boots = indexes.map((index) =>
    bootWith({ id: randomUUID(), mac: site().tenant.macs[index] ?? '', outcome: failure }),
  )
  await site().report(...boots)
  return boots.map(({ id }) => id)
}

async function readAll(input: object): Promise<EventView[]> {
  const items: EventView[] = []
  let cursor: string | null = null
  do {
    const page: Page = await list({ ...input, cursor })
    items.push(...page.items)
    cursor = page.nextCursor
  } while (cursor)
  return items
}

const bootsOf = (events: EventView[]) => events.map(({ data }) => data.bootId)

test('events are there without any webhook, each with its place, its objects and the data of its message', async () => {
  const { organizationId, farmId, siteId, collectionId, vdiskId, deviceIds, versionId } = site().tenant
  const { edgeId } = site().edge
  const [bootId] = await fail(0)
  site().api.clock.advance(1_000)
  const files = { sizeBytes: 1_048_576, diskPath: 'linux/2.raw', commandLine: 'quiet' }
  const { id: newer } = await site().mutate<{ id: string }>('vdisk.registerVersion', { vdiskId, ...files })
  const { items, nextCursor } = await list()
  const nowhere = { farmId, siteId: null, collectionId: null, deviceId: null, edgeId: null, vdiskId: null }
  const any = { id: expect.any(String), organizationId, timestamp: expect.any(String) }
  expect(nextCursor).toBeNull()
  expect(items).toEqual([
    {
      ...any,
      ...nowhere,
      number: 2,
      type: 'version.promoted',
      vdiskId,
      data: expect.objectContaining({ vdiskId, versionId: newer, previousVersionId: versionId }),
    },
    {
      ...any,
      ...nowhere,
      number: 1,
      type: 'boot.failed',
      siteId,
      collectionId,
      deviceId: deviceIds[0],
      edgeId,
      data: expect.objectContaining({ bootId, deviceName: 'pc-01', untrusted: { text: failure.text } }),
    },
  ])
  expect(await site().query('event.get', { eventId: items[1]?.id })).toEqual(items[1])
})

test('an event is the message of its webhook, under the same id', async () => {
  await site().mutate('webhook.create', { name: 'Chat', url: 'https://127.0.0.1:8443/', events: ['boot.failed'] })
  await fail(0)
  const { organizationId } = site().tenant
  const message = await site().api.db.webhookDelivery.findFirstOrThrow({
    where: { organizationId },
    select: { event: { select: { id: true, payload: true } } },
  })
  const [event] = (await list()).items
  expect(event).toMatchObject({ id: message.event.id, ...(message.event.payload as object) })
})

test('a test message of a webhook is no event', async () => {
  const { id: webhookId } = await site().mutate<{ id: string }>('webhook.create', {
    name: 'Chat',
    url: 'https://127.0.0.1:8443/',
    events: ['boot.failed'],
  })
  const { eventId } = await site().mutate<{ eventId: string }>('webhook.ping', { webhookId })
  await fail(0)
  expect((await list()).items.map(({ type, number }) => [type, number])).toEqual([['boot.failed', 1]])
  expect((await site().tryQuery('event.get', { eventId })).status).toBe(404)
})

test('what is reported again is no further event', async () => {
  const boot = bootWith({ id: randomUUID(), mac: site().mac, outcome: failure })
  const held = { class: 'edge', usedBytes: 900, sizeBytes: 1000, atUs: 9e6 } as const
  await site().report(boot, { ...boot, revision: 2, guest: guestWith({ writeCache: held }) })
  await site().report({ ...boot, revision: 3, guest: guestWith({ writeCache: held }) })
  expect((await list({ sort: 'number' })).items.map(({ type }) => type).sort()).toEqual([
    'boot.failed',
    'write_cache.filling',
  ])
})

describe('the pages', () => {
  test.each(['number', '-number'])('with sort=%s have each event once, in its order', async (sort) => {
    for (const index of [0, 1, 2, 3, 4, 5, 0]) await fail(index)
    const numbers = (await readAll({ sort, limit: 3 })).map(({ number }) => number)
    const ascending = [1, 2, 3, 4, 5, 6, 7]
    expect(numbers).toEqual(sort === 'number' ? ascending : ascending.reverse())
  })

  test('go on from a kept cursor with what happened since, and with nothing else', async () => {
    const before = await fail(0, 1)
    const start = await list({ sort: 'number', limit: 1 })
    expect(start.nextCursor).toBe(start.resumeCursor)
    const end = await list({ sort: 'number', cursor: start.resumeCursor })
    expect(end.nextCursor).toBeNull()
    expect(bootsOf([...start.items, ...end.items]).sort()).toEqual(before.sort())
    expect((await list({ sort: 'number', cursor: end.resumeCursor })).items).toEqual([])
    const later = await fail(2)
    const next = await list({ sort: 'number', cursor: end.resumeCursor })
    expect(bootsOf(next.items)).toEqual(later)
    expect((await list({ sort: 'number', cursor: next.resumeCursor })).items).toEqual([])
  })

  test('newest first, too, tell where to go on, also before the first event', async () => {
    const { resumeCursor } = await list()
    const [first] = await fail(0)
    const newest = await list({ limit: 1 })
    const [second] = await fail(1)
    expect(bootsOf((await list({ sort: 'number', cursor: resumeCursor })).items)).toEqual([first, second])
    expect(bootsOf((await list({ sort: 'number', cursor: newest.resumeCursor })).items)).toEqual([second])
  })

  test('of a filter move their cursor on, although nothing matches', async () => {
    await fail(0)
    const { items, resumeCursor } = await list({ sort: 'number', types: ['rollout.paused'] })
    expect(items).toEqual([])
    expect((await list({ sort: 'number', cursor: resumeCursor })).items).toEqual([])
  })
})

test('the list is narrowed down by type, time, place and object', async () => {
  const { farmId, siteId, collectionId, vdiskId, deviceIds } = site().tenant
  const { edgeId } = site().edge
  const { api } = site()
  const [first = ''] = await fail(0)
  api.clock.advance(60_000)
  const since = api.clock.now.toISOString()
  const [second = ''] = await fail(1)
  await site().edge.heartbeat()
  api.clock.advance(1_000)
  const files = { sizeBytes: 1_048_576, diskPath: 'linux/2.raw', commandLine: 'quiet' }
  await site().mutate('vdisk.registerVersion', { vdiskId, ...files })
  api.clock.advance(10 * 60_000)
  await findSilentEdges({ db: api.serverDb, clock: api.clock.read })
  const of = async (filter: object) =>
    (await list({ sort: 'number', ...filter })).items.map(({ type, data }) => data.bootId ?? type)
  const [promoted, offline] = ['version.promoted', 'edge.offline']
  expect(await of({})).toEqual([first, second, promoted, offline])
  expect(await of({ types: ['edge.offline', 'version.promoted'] })).toEqual([promoted, offline])
  expect(await of({ since })).toEqual([second, promoted, offline])
  expect(await of({ until: since })).toEqual([first])
  expect(await of({ farmId })).toEqual([first, second, promoted, offline])
  expect(await of({ siteId })).toEqual([first, second, offline])
  expect(await of({ collectionId })).toEqual([first, second])
  expect(await of({ deviceId: deviceIds[1] })).toEqual([second])
  expect(await of({ edgeId })).toEqual([first, second, offline])
  expect(await of({ vdiskId })).toEqual([promoted])
  expect(await of({ siteId, types: ['boot.failed'], since })).toEqual([second])
  expect(await of({ deviceId: randomUUID() })).toEqual([])
})

describe('a role of a part', () => {
  async function viewerOf(scope: { siteId?: string; collectionId?: string; farmId?: string }): Promise<string> {
    const { organizationId } = site().tenant
    const { api } = site()
    const email = `${randomUUID()}@example.test`
    const user = await api.db.user.create({ data: { name: 'A', email }, select: { id: true } })
    await api.db.membership.create({ data: { organizationId, userId: user.id } })
    await api.db.roleGrant.create({ data: { organizationId, userId: user.id, role: 'viewer', ...scope } })
    return sessionCookie(api, user.id)
  }

  test('shows what happened there, and nothing of the rest by list or by id', async () => {
    const { farmId, siteId, collectionId, vdiskId } = site().tenant
    const place = { farmId, name: 'The site beside', timeZone: 'UTC' }
    const { id: besideId } = await site().mutate<{ id: string }>('site.create', place)
    await fail(0)
    site().api.clock.advance(1_000)
    const files = { sizeBytes: 1_048_576, diskPath: 'linux/2.raw', commandLine: 'quiet' }
    await site().mutate('vdisk.registerVersion', { vdiskId, ...files })
    const types = async (cookie: string) => (await list({}, cookie)).items.map(({ type }) => type)
    expect(await types(await viewerOf({ farmId }))).toEqual(['version.promoted', 'boot.failed'])
    expect(await types(await viewerOf({ siteId }))).toEqual(['boot.failed'])
    expect(await types(await viewerOf({ collectionId }))).toEqual(['boot.failed'])
    const beside = await viewerOf({ siteId: besideId })
    expect(await types(beside)).toEqual([])
    for (const { id: eventId } of (await list()).items)
      await expect(query(site().api, beside, 'event.get', { eventId })).rejects.toThrow('404')
  })
})

describe('by REST', () => {
  const get = (path: string) => callRest(site().api, path, { headers: { cookie: site().cookie } })

  test('types are given one by one, and an event has an ETag', async () => {
    await fail(0)
    const page = await get('/events?sort=number&types=boot.failed&types=edge.offline')
    const { items } = page.body as Page
    expect(items).toHaveLength(1)
    const event = await get(`/events/${items[0]?.id}`)
    expect(event.body).toEqual(items[0])
    const headers = { cookie: site().cookie, 'if-none-match': event.headers.get('etag') ?? '' }
    expect((await callRest(site().api, `/events/${items[0]?.id}`, { headers })).status).toBe(304)
  })

  test.each([
    ['types=boot.exploded', 'types'],
    ['since=yesterday', 'since'],
    ['sort=type', 'sort'],
    ['deviceId=pc-01', 'deviceId'],
    ['cursor=nonsense', 'cursor'],
  ])('%s is refused by its name', async (search, field) => {
    const { status, body } = await get(`/events?${search}`)
    expect([status, body]).toMatchObject([
      400,
      { code: 'invalid', errors: [{ field: expect.stringContaining(field) }] },
    ])
  })

  test('a cursor from before a restore is refused, so that nothing is skipped unnoticed', async () => {
    await fail(0)
    const { resumeCursor } = await list()
    // As packages/db/src/restore.ts does it.
    const where = { id: site().tenant.organizationId }
    await site().api.db.organization.update({ where, data: { stateIncarnation: { increment: 1 } } })
    const { status, body } = await get(`/events?sort=number&cursor=${resumeCursor}`)
    expect([status, body]).toMatchObject([
      410,
      { code: 'cursor_expired', detail: expect.stringContaining('restored from a backup') },
    ])
  })
})
