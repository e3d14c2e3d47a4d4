import { randomUUID } from 'node:crypto'
import type { BootReport } from '@bootfarm/proto/uplink'
import { expect, test } from 'vitest'
import { bootWith, EdgeClient } from '../../test/edge-client.ts'
import { person } from '../../test/matrix/callers.ts'
import { randomNumbers } from '../../test/seeded/random-numbers.ts'
import { query } from '../../test/test-client.ts'
import { useTestSite } from '../../test/test-site.ts'
import { makeJoinToken } from '../../test/test-tenant.ts'
import { type AttributeName, attributeNames, attributes } from './attributes.ts'
import type { ComparisonView } from './comparison-schema.ts'
import type { DifferencesView, ExploreView } from './schema.ts'

const site = useTestSite('viewer')
const hourMs = 3_600_000
const storesOnSsd = {
  loadAverage: 0.5,
  processors: 4,
  memoryTotalBytes: 8e9,
  memoryAvailableBytes: 4e9,
  fileCacheBytes: 2e9,
  storeTotalBytes: 4e11,
  storeFreeBytes: 3e11,
  storeMedium: { kind: 'ssd', name: 'Disk' },
} as const
const dayMs = 24 * hourMs
const now = () => site().api.clock.now.getTime()
const explore = (input: object) => site().query<ExploreView>('explore.get', input)

async function countListed(filter: object): Promise<number> {
  let count = 0
  let cursor: string | null = null
  do {
    const page: { items: object[]; nextCursor: string | null } = await site().query('boot.list', {
      ...filter,
      cursor,
      limit: 100,
    })
    count += page.items.length
    cursor = page.nextCursor
  } while (cursor !== null)
  return count
}

const outcomes: BootReport['outcome'][] = [
  undefined,
  { kind: 'ready' },
  { kind: 'ready' },
  { kind: 'ready' },
  { kind: 'failed', phase: 'loader', cause: 'nbp_not_found' },
  { kind: 'silent', phase: 'dhcp' },
  { kind: 'superseded' },
]
const histogram = (count: number) => ({ sumUs: 10, maxUs: 2, firstBucket: 1, counts: [count] })

const randomMachine = (below: (limit: number) => number) => ({
  processors: 1 + below(4),
  memoryMib: 512 + below(4) * 1_024 - below(2),
  driver: 'e1000e',
  ...(below(2) === 0 ? {} : { model: `Maker ${below(3)}` }),
})

function randomBoot(below: (limit: number) => number, mac: string): BootReport {
  const { outcome: _ready, phases, ...boot } = bootWith({ id: randomUUID(), mac })
  const outcome = outcomes[below(outcomes.length)]
  return {
    ...boot,
    simulated: below(2) === 0,
    startedUnixMs: now() - below(6 * dayMs),
    phases: phases.map((phase) => ({ ...phase, durationUs: below(2 ** 24) })),
    ...(below(3) === 0 ? {} : { machine: randomMachine(below) }),
    ...(below(3) === 0 ? {} : { ip: `10.77.${below(3)}.9` }),
    ...(below(3) === 0 ? {} : { clientArch: [0, 7, 11][below(3)] ?? 0 }),
    ...(below(2) === 0 ? {} : { readTimes: { warm: histogram(9), cold: histogram(1 + below(2)) } }),
    ...(below(3) === 0 ? {} : { vdiskId: site().tenant.vdiskId, versionId: site().tenant.versionId }),
    ...(outcome ? { outcome } : {}),
  }
}

async function plantBoots(seed: number, count = 60) {
  const below = randomNumbers(seed)
  const { tenant } = site()
  const macs = [...tenant.macs, '02:bf:00:00:99:01']
  const boots = Array.from({ length: count }, () => randomBoot(below, macs[below(macs.length)] ?? ''))
  await site().report(...boots)
}

const stepEnd = ({ steps, stepMs, until }: ExploreView, index: number) =>
  new Date(Math.min(Date.parse(steps[index]?.at ?? '') + stepMs, Date.parse(until))).toISOString()

test.each([5, 20261129])('each number counts the list that it leads to (seed %i)', async (seed) => {
  await plantBoots(seed)
  const { farmId, siteId, collectionId } = site().tenant
  for (const filter of [{}, { farmId, siteId }, { collectionId }, { outcome: 'ready' }, { reads: 'cold' }]) {
    const found = await explore({ ...filter, by: 'firmware' })
    const { since, until, total, sample, cells, steps, durationEdgesUs } = found
    const listed = (more: object) => countListed({ since, until, ...filter, ...more })
    expect(sample).toEqual({ bootCount: await listed({}), share: 1, estimatedCount: total.bootCount })
    expect(total.bootCount).toBeGreaterThan(0)
    if (!('outcome' in filter)) {
      expect(total.failedCount).toBe(await listed({ outcome: 'unsuccessful' }))
      expect(total.readyCount).toBe(await listed({ outcome: 'ready' }))
    }
    // As many ready boots are as slow as the 95th percentile, or slower, as its share leaves.
    const slow = await countListed({ since, until, ...filter, outcome: 'ready', durationUsMin: total.p95Us })
    expect(slow).toBe(total.readyCount - Math.ceil(total.readyCount * 0.95) + 1)
    for (const place of [0, Math.floor(cells.counts.length / 2), cells.counts.length - 1]) {
      const [step = 0, bin = 0] = [cells.steps[place], cells.bins[place]]
      const next = durationEdgesUs[bin + 1]
      const ofCell = {
        since: steps[step]?.at,
        until: stepEnd(found, step),
        durationUsMin: durationEdgesUs[bin],
        ...(next === undefined ? {} : { durationUsMax: next - 1 }),
      }
      expect(await listed(ofCell)).toBe(cells.counts[place])
    }
    for (const [index, step] of steps.entries())
      if (step.bootCount > 3)
        expect(await listed({ since: step.at, until: stepEnd(found, index) })).toBe(step.bootCount)
  }
})

test('groups of every attribute have the boots of their lists', async () => {
  expect((await site().edge.heartbeat({ machine: storesOnSsd })).status).toBe(200)
  await plantBoots(99)
  for (const by of attributeNames) {
    const { groups, otherGroups, since, until, total } = await explore({ by })
    const counted = groups.reduce((sum, { bootCount }) => sum + bootCount, 0)
    if (otherGroups === 0) expect(counted).toBe(total.bootCount)
    else expect([by, groups.length, counted < total.bootCount]).toEqual(['device', 24, true])
    const { filter } = attributes[by]
    expect(groups.some(({ value }) => value !== null)).toBe(true)
    for (const { value, bootCount } of groups) {
      if (value === null) continue
      const isNumber = ['clientArch', 'processors', 'memoryGib', 'hour'].includes(filter)
      const wanted = isNumber ? Number(value) : value
      expect([by, value, await countListed({ since, until, [filter]: wanted })]).toEqual([by, value, bootCount])
    }
  }
  const { groups } = await explore({ by: 'version' })
  expect(groups.find(({ value }) => value !== null)?.label).toMatch(/, version 1$/)
})

test('slow boots of one firmware are told apart from the others', async () => {
  const { mac } = site()
  const boot = (clientArch: number, durationUs: number, minutes: number) =>
    bootWith({
      id: randomUUID(),
      mac,
      clientArch,
      startedUnixMs: now() - minutes * 60_000,
      phases: bootWith({ id: randomUUID(), mac })
        .phases.slice(0, 1)
        .map((phase) => ({ ...phase, durationUs })),
    })
  await site().report(
    ...Array.from({ length: 12 }, (_, index) => boot(7, 90_000_000, 1 + index)),
    ...Array.from({ length: 40 }, (_, index) => boot(0, 9_000_000, 1 + index)),
    ...Array.from({ length: 3 }, (_, index) => boot(7, 9_000_000, 1 + index)),
  )
  const box = { boxSince: new Date(now() - hourMs).toISOString(), boxUntil: new Date(now()).toISOString() }
  const found = await site().query<DifferencesView>('explore.differences', { ...box, boxDurationUsMin: 60_000_000 })
  expect([found.inside.bootCount, found.outside.bootCount]).toEqual([12, 43])
  expect(found.values[0]).toMatchObject({
    attribute: 'firmware' satisfies AttributeName,
    value: '7',
    insideCount: 12,
    outsideCount: 3,
    isClear: true,
  })
  expect(found.values.slice(1).filter(({ isClear }) => isClear)).toEqual([])
})

test('two versions are compared phase by phase, with their failures, distributions and files', async () => {
  const { mac, tenant } = site()
  const [slowVersion, usualVersion] = [randomUUID(), tenant.versionId]
  const boot = (versionId: string, index: number): BootReport => {
    const { outcome: _ready, phases, ...rest } = bootWith({ id: randomUUID(), mac })
    const loaderUs = (versionId === slowVersion ? 9_000_000 : 2_000_000) + index * 10_000
    return {
      ...rest,
      vdiskId: tenant.vdiskId,
      versionId,
      startedUnixMs: now() - index * 60_000,
      phases: phases.map((phase) => ({ ...phase, durationUs: phase.name === 'dhcp' ? 500_000 : loaderUs })),
      outcome: index === 0 ? { kind: 'failed', phase: 'loader', cause: 'nbp_not_found' } : { kind: 'ready' },
    }
  }
  const boots = [slowVersion, usualVersion].flatMap((id) => Array.from({ length: 20 }, (_, index) => boot(id, index)))
  await site().report(...boots)
  const file = { kind: 'file', reads: 1, bytes: 4096, coldReads: 0, firstUs: 1 } as const
  const read = { reads: 1, bytes: 4096, coldReads: 0, coldBytes: 0, aheadReads: 0, aheadBytes: 0, storageUs: 7 }
  await site().edge.filesRead(boots[1]?.id ?? '', {
    ...read,
    versionId: slowVersion,
    namedBytes: 4096,
    droppedReads: 0,
    fileCount: 1,
    diskBytes: 2 ** 30,
    cellBytes: 2 ** 22,
    cells: [],
    files: [{ ...file, name: '/new', storageUs: 7 }],
    slowest: [],
  })
  const compare = (input: object) => site().query<ComparisonView>('explore.compare', input)
  const found = await compare({ versionId: slowVersion, baseVersionId: usualVersion })
  expect([found.set.figures.readyCount, found.base.figures.readyCount]).toEqual([19, 19])
  const phaseOf = (name: string) => found.phases.find(({ phase }) => phase === name)
  expect(phaseOf('dhcp')?.difference).toMatchObject({ difference: 0, isClear: false })
  expect(phaseOf('stage2')).toMatchObject({ baseMedianUs: 2_100_000, setMedianUs: 9_100_000 })
  expect(phaseOf('stage2')?.difference).toMatchObject({ difference: 7_000_000, isClear: true })
  expect(phaseOf('firmware')).toBeUndefined()
  expect(found.failures).toMatchObject({ difference: 0, isClear: false })
  for (const { durationCounts } of [found.set, found.base])
    expect(durationCounts.reduce((sum, count) => sum + count, 0)).toBe(19)
  expect([found.set.fileLists, found.base.fileLists]).toEqual([1, 0])
  expect(found.files).toMatchObject([{ name: '/new', base: { boots: 0 }, set: { boots: 1, storageUs: 7 } }])
  // No boots on a side are no error.
  const empty = await compare({ versionId: slowVersion, baseVersionId: randomUUID() })
  expect([empty.base.sample.bootCount, empty.failures, empty.phases.at(-1)?.difference]).toEqual([0, null, null])
  expect(await site().tryQuery('explore.compare', { baseSince: '1999-01-01T00:00:00Z' })).toMatchObject({ status: 400 })
})

test('many boots are read as a sample, whose share says how many there are', async () => {
  const { api, tenant } = site()
  const planted = 45_000
  await plantBoots(1, 1)
  const { organizationId, siteId } = tenant
  const template = await api.db.boot.findFirstOrThrow({ where: { organizationId }, select: { id: true } })
  await api.db.$executeRaw`
    insert into boot (organization_id, id, received_on, edge_id, site_id, mac, revision, started_at, received_at, updated_at,
      outcome, total_us, duration_us, bytes_out, retries, simulated, generated, phases)
    select organization_id, gen_random_uuid(), received_on, edge_id, ${siteId}::uuid, mac, 1,
      received_at - make_interval(secs => place % 80000), received_at, received_at,
      (case when place % 20 = 0 then 'failed' else 'ready' end)::"BootOutcome", 1000000 + place * 1000,
      1000000 + place * 1000, 0, 0, false, false, '[]'
    from boot, generate_series(1, ${planted}) as place where id = ${template.id}::uuid`
  const { sample, total } = await explore({})
  expect(sample.share).toBeLessThan(0.6)
  expect(sample.bootCount).toBeGreaterThan(5_000)
  expect(sample.bootCount).toBeLessThan(30_000)
  expect(Math.abs(sample.estimatedCount / planted - 1)).toBeLessThan(0.05)
  expect(Math.abs((total.p50Us ?? 0) / 23_500_000 - 1)).toBeLessThan(0.05)
  expect(Math.abs(total.failedCount / total.bootCount / 0.05 - 1)).toBeLessThan(0.2)
  // The same filter gives the same sample.
  expect((await explore({})).sample).toEqual(sample)
})

test('a viewer of one farm reads nothing of another', async () => {
  const { api, tenant } = site()
  const { organizationId } = tenant
  const farm = await api.db.farm.create({ data: { organizationId, name: 'Second' } })
  const place = { organizationId, farmId: farm.id, timeZone: 'UTC' }
  const other = await api.db.site.create({ data: { ...place, name: 'Second' } })
  const edge = await EdgeClient.enrolled(api.url, await makeJoinToken(api, { ...tenant, siteId: other.id }))
  await plantBoots(4, 20)
  const mac = '02:bf:00:00:99:01'
  await site().send([{ type: 'boot', boot: bootWith({ id: randomUUID(), mac, startedUnixMs: now() - hourMs }) }], edge)
  const scope = { farmId: farm.id, siteId: null, collectionId: null }
  const { headers } = await person(api, organizationId, { role: 'viewer', scope })
  const { total, groups } = await query<ExploreView>(api, headers.cookie ?? '', 'explore.get', { by: 'site' })
  expect([total.bootCount, groups.map(({ value }) => value)]).toEqual([1, [other.id]])
})

test('spans and boxes that make no sense are refused with what to do', async () => {
  const at = (offsetMs: number) => new Date(now() + offsetMs).toISOString()
  const box = { boxSince: at(-hourMs), boxUntil: at(0) }
  for (const [path, input, text] of [
    ['explore.get', { since: at(0), until: at(-hourMs) }, 'ends before it begins'],
    ['explore.get', { since: at(-93 * dayMs) }, 'longer than 92 days'],
    ['explore.get', { since: 'yesterday' }, ''],
    ['explore.get', { by: 'colour' }, ''],
    ['explore.get', { durationUsMin: -1 }, ''],
    ['explore.differences', {}, ''],
    ['explore.differences', { boxSince: at(0), boxUntil: at(-1) }, 'The box ends'],
    ['explore.differences', { ...box, boxDurationUsMin: 2, boxDurationUsMax: 1 }, 'exceeds its longest'],
  ] as const) {
    const answer = await site().tryQuery(path, input)
    expect(answer).toMatchObject({ status: 400, code: 'invalid' })
    expect(JSON.stringify(answer)).toContain(text)
  }
  // Nothing is there: nothing is wrong.
  const old = await explore({ since: '1990-01-01T00:00:00Z', until: '1990-01-02T00:00:00Z' })
  expect([old.total.bootCount, old.cells.counts]).toEqual([0, []])
})
