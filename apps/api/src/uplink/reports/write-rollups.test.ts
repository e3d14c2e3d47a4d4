import { randomUUID } from 'node:crypto'
import type { BootReport } from '@bootfarm/proto/uplink'
import { expect, test } from 'vitest'
import { bootWith, type EdgeClient } from '../../../test/edge-client.ts'
import { randomNumbers } from '../../../test/seeded/random-numbers.ts'
import { type TestSite, useTestSite } from '../../../test/test-site.ts'
import { dropOldBoots } from '../../boot/keep-boot-partitions.ts'
import { addSums, emptySums, firstHourKept, placeKey, RollupChanges, type RollupSums } from '../../rules/boot-rollup.ts'
import { bucketOf, quantileOf } from '../../rules/time-sketch.ts'

const site = useTestSite('viewer')
const dayMs = 86_400_000

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

function randomBoot(below: (limit: number) => number, id: string, startedUnixMs: number): BootReport {
  const { outcome: _ready, phases, ...boot } = bootWith({ id, mac: `02:bf:00:00:00:0${1 + below(8)}` })
  const outcome = outcomes[below(outcomes.length)]
  return {
    ...boot,
    revision: below(6),
    generated: below(5) === 0,
    startedUnixMs,
    phases: phases.map((phase) => ({ ...phase, durationUs: below(2 ** 31) })),
    ...(outcome ? { outcome } : {}),
  }
}

/** Sums of the rollups as they are kept, and as the boots that are there now give them. */
async function sums({ api, tenant }: TestSite): Promise<[Map<string, RollupSums>, Map<string, RollupSums>]> {
  const { organizationId } = tenant
  const kept = await api.db.bootRollup.findMany({ where: { organizationId } })
  const boots = await api.db.boot.findMany({ where: { organizationId } })
  const changes = new RollupChanges(api.clock.now)
  for (const boot of boots)
    changes.count({ ...boot, totalUs: Number(boot.totalUs), phases: boot.phases as BootReport['phases'] }, 1)
  return [
    new Map(
      // Hours that are past their time wait for the job that drops them.
      kept
        .filter((row) => row.grain === 'day' || row.startsAt >= firstHourKept(api.clock.now))
        .map((row) => [
          placeKey(row),
          {
            counts: {
              booting: row.bootingCount,
              ready: row.readyCount,
              failed: row.failedCount,
              silent: row.silentCount,
              no_response: row.noResponseCount,
              superseded: row.supersededCount,
              local_disk: row.localDiskCount,
              generated: row.generatedCount,
            },
            totalUsSum: Number(row.totalUsSum),
            totalUsBuckets: row.totalUsBuckets as RollupSums['totalUsBuckets'],
            phases: row.phases as unknown as RollupSums['phases'],
          },
        ]),
    ),
    new Map(changes.entries().map(({ place, sums }) => [placeKey(place), sums])),
  ]
}

const withoutEmpty = (all: Map<string, RollupSums>) =>
  new Map([...all].filter(([, one]) => JSON.stringify(one) !== JSON.stringify(emptySums())))

test.each([1, 20261121])(
  'rollups are what a recount gives, after any sequence of reports (seed %i)',
  async (seed) => {
    const below = randomNumbers(seed)
    const { api, edge } = site()
    const edges: EdgeClient[] = [edge, await site().enrolEdge()]
    const begins = new Map<string, number>()
    for (let round = 0; round < 40; round += 1) {
      if (below(4) === 0) api.clock.advance(below(3 * dayMs))
      const reports = Array.from({ length: 1 + below(12) }, () => {
        const isNew = begins.size === 0 || below(3) === 0
        const id = isNew ? randomUUID() : ([...begins.keys()][below(begins.size)] ?? '')
        // Clocks of edges are wrong: by hours mostly, by years now and then.
        const begin = begins.get(id) ?? api.clock.now.getTime() - below(below(10) === 0 ? 2 ** 31 * 100 : 2 * dayMs)
        begins.set(id, begin)
        if (below(10) === 0) return { type: 'withdrawn' as const, bootId: id }
        return { type: 'boot' as const, boot: randomBoot(below, id, Math.max(0, begin)) }
      })
      await site().send(reports, edges[below(2)])
    }
    const [kept, recounted] = await sums(site())
    expect(recounted.size).toBeGreaterThan(10)
    expect(withoutEmpty(kept)).toEqual(withoutEmpty(recounted))

    // Days stay when their boots are dropped; a report of a boot that is still there changes them as before.
    const context = { db: api.db, clock: api.clock.read }
    await dropOldBoots(context, { summaryDays: 1, detailDays: 1 })
    const [afterDrop] = await sums(site())
    const ofDays = (all: Map<string, RollupSums>) => new Map([...all].filter(([key]) => key.includes(' day ')))
    expect(ofDays(afterDrop)).toEqual(ofDays(kept))
  },
  60_000,
)

test('a quantile of a sketch is right within 1.6 %', () => {
  const below = randomNumbers(7)
  const times = Array.from({ length: 5_000 }, () => below(2 ** (1 + below(31)))).sort((a, b) => a - b)
  const whole = emptySums()
  for (const us of times) addSums(whole, { ...emptySums(), totalUsSum: us, totalUsBuckets: { [bucketOf(us)]: 1 } })
  for (const share of [0.01, 0.25, 0.5, 0.95, 0.999]) {
    const exact = times[Math.ceil(share * times.length) - 1] ?? 0
    const found = quantileOf(whole.totalUsBuckets, share) ?? Number.NaN
    expect(Math.abs(found - exact)).toBeLessThanOrEqual(0.016 * exact)
  }
})
