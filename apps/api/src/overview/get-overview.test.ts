import { randomUUID } from 'node:crypto'
import type { BootReport } from '@bootfarm/proto/uplink'
import { expect, test } from 'vitest'
import { bootWith, EdgeClient } from '../../test/edge-client.ts'
import { person } from '../../test/matrix/callers.ts'
import { randomNumbers } from '../../test/seeded/random-numbers.ts'
import { query } from '../../test/test-client.ts'
import { useTestSite } from '../../test/test-site.ts'
import { makeJoinToken } from '../../test/test-tenant.ts'
import type { CollectionOverview, Overview } from './schema.ts'

const site = useTestSite('viewer')
const hourMs = 3_600_000

interface Page {
  items: object[]
  nextCursor: string | null
}

const outcomes: BootReport['outcome'][] = [
  undefined,
  { kind: 'ready' },
  { kind: 'ready' },
  { kind: 'failed', phase: 'loader', cause: 'nbp_not_found' },
  { kind: 'silent', phase: 'dhcp' },
  { kind: 'silent', phase: 'firmware' },
  { kind: 'superseded' },
  { kind: 'local_disk' },
]

function randomBoot(below: (limit: number) => number, mac: string): BootReport {
  const { outcome: _ready, phases, ...boot } = bootWith({ id: randomUUID(), mac })
  const outcome = outcomes[below(outcomes.length)]
  return {
    ...boot,
    revision: 1 + below(3),
    generated: below(6) === 0,
    startedUnixMs: site().api.clock.now.getTime() - below(30 * hourMs),
    phases: phases.map((phase) => ({ ...phase, durationUs: below(2 ** 31) })),
    ...(outcome ? { outcome } : {}),
  }
}

/** How many rows a list has, page by page. */
async function countListed(list: 'boot.list' | 'device.list' | 'edge.list', filter: object): Promise<number> {
  let count = 0
  let cursor: string | null = null
  do {
    const page: Page = await site().query(list, { ...filter, cursor, limit: 7 })
    count += page.items.length
    cursor = page.nextCursor
  } while (cursor !== null)
  return count
}

/** A second farm with one site and an edge, which reports. */
async function secondFarm() {
  const { api, tenant } = site()
  const { organizationId } = tenant
  const farm = await api.db.farm.create({ data: { organizationId, name: 'Second' } })
  const place = { organizationId, farmId: farm.id, timeZone: 'UTC' }
  const { id: siteId } = await api.db.site.create({ data: { ...place, name: 'Second' } })
  const edge = await EdgeClient.enrolled(api.url, await makeJoinToken(api, { ...tenant, siteId }))
  return { farmId: farm.id, siteId, edge }
}

test.each([7, 20261128])('a tile counts what the list that it leads to has, in every scope (seed %i)', async (seed) => {
  const below = randomNumbers(seed)
  const { tenant } = site()
  const other = await secondFarm()
  const stranger = '02:bf:00:00:99:01'
  const random = (count: number, macs: string[]) =>
    Array.from({ length: count }, () => ({
      type: 'boot' as const,
      boot: randomBoot(below, macs[below(macs.length)] ?? stranger),
    }))
  await site().send(random(40, [...tenant.macs, stranger]))
  await site().send(random(25, [stranger]), other.edge)
  const scopes = [
    {},
    { farmId: tenant.farmId },
    { farmId: other.farmId },
    { siteId: tenant.siteId },
    { farmId: other.farmId, siteId: other.siteId },
  ]
  const totals = []
  for (const scope of scopes) {
    const { counts, last24Hours } = await site().query<Overview>('overview.get', scope)
    const { since, readyCount, failedCount, noResponseCount } = last24Hours
    const countOf = (filter: object) => countListed('boot.list', { ...scope, ...filter })
    expect({
      booting: counts.bootsBooting,
      ready: readyCount,
      failed: failedCount,
      noResponse: noResponseCount,
      devices: counts.devices,
      edgesOnline: counts.edgesOnline,
      edges: counts.edges,
    }).toEqual({
      booting: await countOf({ outcome: 'booting' }),
      ready: await countOf({ outcome: 'ready', since }),
      failed: await countOf({ outcome: 'unsuccessful', since }),
      noResponse: await countOf({ outcome: 'no_response', since }),
      devices: await countListed('device.list', scope),
      edgesOnline: await countListed('edge.list', { ...scope, state: 'online' }),
      edges: (await countListed('edge.list', scope)) - (await countListed('edge.list', { ...scope, state: 'revoked' })),
    })
    totals.push(readyCount)
  }
  await expectCollectionCounts()
  // Otherwise every scope could be the same one.
  expect(totals[0]).toBe((totals[1] ?? 0) + (totals[2] ?? 0))
  expect(Math.min(...totals)).toBeGreaterThan(0)
})

/** The figures of the collection are those of its lists, too. */
async function expectCollectionCounts() {
  const { collectionId } = site().tenant
  const of = await site().query<CollectionOverview>('overview.ofCollection', { collectionId })
  const { since, readyCount, failedCount, noResponseCount, p50Us, p95Us } = of.last24Hours
  const listed = (filter: object) => countListed('boot.list', { collectionId, ...filter })
  expect([of.deviceCount, of.bootsBooting, readyCount, failedCount, noResponseCount]).toEqual([
    await countListed('device.list', { collectionId }),
    await listed({ outcome: 'booting' }),
    await listed({ outcome: 'ready', since }),
    await listed({ outcome: 'unsuccessful', since }),
    await listed({ outcome: 'no_response', since }),
  ])
  expect(readyCount).toBeGreaterThan(1)
  // As many take as long or longer as stand behind it.
  const longer = (us: number | null) => listed({ outcome: 'ready', since, durationUsMin: us })
  expect(await longer(p50Us)).toBe(readyCount - Math.floor(readyCount * 0.5))
  expect(await longer(p95Us)).toBe(readyCount - Math.floor(readyCount * 0.95))
}

test('a site of another farm, and one that does not exist, is not found', async () => {
  const other = await secondFarm()
  for (const scope of [
    { farmId: site().tenant.farmId, siteId: other.siteId },
    { siteId: randomUUID() },
    { farmId: randomUUID() },
  ])
    expect(await site().tryQuery('overview.get', scope)).toMatchObject({ status: 404, code: 'not_found' })
})

test('a viewer of one farm counts, searches and reads nothing of another', async () => {
  const { api, tenant, mac } = site()
  const other = await secondFarm()
  const startedUnixMs = api.clock.now.getTime() - 60_000
  const ofOther = bootWith({ id: randomUUID(), mac: '02:bf:00:00:99:01', startedUnixMs })
  await site().report(bootWith({ id: randomUUID(), mac, startedUnixMs }))
  await site().send([{ type: 'boot', boot: ofOther }], other.edge)
  const scope = { farmId: other.farmId, siteId: null, collectionId: null }
  const { headers } = await person(api, tenant.organizationId, { role: 'viewer', scope })
  const ask = <T>(path: string, input: object) => query<T>(api, headers.cookie ?? '', path, input)
  const { counts, recentBoots, last24Hours } = await ask<Overview>('overview.get', {})
  expect(counts).toMatchObject({ sites: 1, edges: 1, collections: 0, devices: 0, vdisks: 0 })
  expect([recentBoots.map(({ id }) => id), last24Hours.readyCount]).toEqual([[ofOther.id], 1])
  for (const filter of [{ search: mac }, { farmId: tenant.farmId }, { collectionId: tenant.collectionId }])
    expect([filter, await ask('boot.list', filter)]).toEqual([filter, { items: [], nextCursor: null }])
  for (const foreign of [{ farmId: tenant.farmId }, { siteId: tenant.siteId }])
    await expect(ask('overview.get', foreign)).rejects.toThrow()
})
