import { randomUUID } from 'node:crypto'
import type { BootReport, EdgeLoad } from '@bootfarm/proto/uplink'
import { beforeEach, expect, test } from 'vitest'
import { bootWith } from '../../test/edge-client.ts'
import { recordedBoot } from '../../test/seeded/recorded-boots.ts'
import { useTestSite } from '../../test/test-site.ts'
import type { PredictionView } from './schema.ts'

const site = useTestSite('viewer')
const start = new Date('2026-11-20T12:00:10Z')
const none = { streams: 0, tftpBytes: 0, httpBytes: 0, streamBytes: 0, reads: 0, coldReads: 0, coldReadUs: 0 }
const observed = { bytesIn: 0, bytesOut: 0, packetsIn: 0, packetsOut: 0, retries: 0, missingFragments: 0, reads: 0 }

beforeEach(() => {
  site().api.clock.now = start
})

async function hear(load: Partial<EdgeLoad>, edge = site().edge) {
  site().api.clock.advance(30_000)
  expect((await edge.heartbeat({ load: { ...none, ...load } })).status).toBe(200)
}

/** The edge says how fast its link is. */
async function linkOf(linkMbps: number, edge = site().edge) {
  await hear({ linkMbps }, edge)
  await hear({ linkMbps }, edge)
}

/** A boot that began so many minutes ago, and was ready after 4 s. */
function bootAt(minutesAgo: number, changes: Partial<BootReport> = {}): BootReport {
  const { api, mac, tenant } = site()
  const { widthUs, bytes, totalUs, streamFromUs } = recordedBoot()
  const phase = { ...observed, source: 'observed' as const }
  return bootWith({
    id: randomUUID(),
    mac,
    startedUnixMs: api.clock.now.getTime() - minutesAgo * 60_000,
    vdiskId: tenant.vdiskId,
    versionId: tenant.versionId,
    series: { widthUs, bytes },
    phases: [
      { ...phase, name: 'dhcp', startUs: 0, durationUs: streamFromUs },
      { ...phase, name: 'stage2', startUs: streamFromUs, durationUs: totalUs - streamFromUs },
      { ...phase, name: 'ready', startUs: totalUs, durationUs: 0 },
    ],
    outcome: { kind: 'ready' },
    ...changes,
  })
}
const boots = (count: number, changes: Partial<BootReport> = {}) =>
  Array.from({ length: count }, (_, index) => bootAt(5 + index, changes))

const ask = (input: Record<string, unknown> = {}) => {
  const { siteId, versionId } = site().tenant
  return { siteId, versionId, ...input }
}
const predict = (input: Record<string, unknown> = {}) => site().query<PredictionView>('prediction.run', ask(input))

test('a storm is predicted from boots of its version and the links of the edges', async () => {
  await linkOf(1_000)
  await site().report(...boots(6))
  const found = await predict({ devices: 200 })
  expect(found).toMatchObject({ devices: 200, edges: 1, linkMbps: 1_000, isLinkGiven: false, stormBoots: 0 })
  const { version } = found
  expect(version).toMatchObject({ bootCount: 6, unknownBecause: null, storm: { limitedBy: 'link' } })
  // 15 MB each.
  expect(version.storm?.lastUs.value).toBeGreaterThan(24_000_000)
  expect(version.storm?.lastUs.value).toBeLessThan(33_000_000)
  expect(version.storm?.p95Us.low).toBeLessThan(version.storm?.p95Us.value ?? 0)
  // A link that is not there yet.
  const faster = await predict({ devices: 200, linkMbps: 10_000 })
  expect(faster).toMatchObject({ isLinkGiven: true, linkMbps: 10_000 })
  expect(faster.version.storm?.p50Us.value).toBeLessThan(6_000_000)
})

test('without a number, the devices of the site that boot the vDisk are meant', async () => {
  await linkOf(1_000)
  await site().report(...boots(5))
  const { devices } = await predict()
  expect(devices).toBe(site().tenant.deviceIds.length)
})

test('where too little is known there is a reason and no number', async () => {
  const reason = async (input: Record<string, unknown> = { devices: 5 }) => {
    const { version } = await predict(input)
    expect(version.storm === null).toBe(version.unknownBecause !== null)
    return version.unknownBecause
  }
  expect(await reason()).toBe('link_unknown')
  expect(await reason({ devices: 5, linkMbps: 1_000 })).toBe('few_boots')
  await linkOf(1_000)
  await site().report(...boots(4))
  expect(await reason()).toBe('few_boots')
  // None of these says how such a boot goes: another version, not ready, generated, without a series.
  await site().report(
    ...boots(5, { versionId: randomUUID() }),
    ...boots(5, { outcome: { kind: 'silent', phase: 'stage2' } }),
    ...boots(5, { generated: true }),
    ...boots(5, { series: undefined }),
  )
  expect(await reason()).toBe('few_boots')
  await site().report(bootAt(1))
  expect(await reason()).toBe(null)
  expect(await reason({ devices: 5, reads: 'cold' })).toBe('no_cold_boots')
})

test('cold boots tell what a cold edge costs, and none of them what a warm one takes', async () => {
  await linkOf(1_000)
  const cold = { firstBucket: 10, counts: [100], maxUs: 20_000, sumUs: 2_000_000 }
  const coldBoots = boots(5, { readTimes: { cold } })
  await site().report(...coldBoots)
  expect((await predict({ devices: 5 })).version.unknownBecause).toBe('few_warm_boots')
  await site().report(...boots(5).map((boot) => ({ ...boot, startedUnixMs: boot.startedUnixMs - 3_600_000 })))
  expect((await predict({ devices: 5, reads: 'cold' })).version.unknownBecause).toBe(null)
})

test('an edge whose processors are slower than its link is limited by them', async () => {
  const from = { linkMbps: 1_000, streamBytes: 0, processorMs: 0, processorBusyMs: 0 }
  await hear(from)
  // Two processors in 30 s: half of their time for 300 MB, so all of it for 20 MB/s.
  await hear({ ...from, streamBytes: 300_000_000, processorMs: 60_000, processorBusyMs: 30_000 })
  await site().report(...boots(5))
  const found = await predict({ devices: 100 })
  expect(found).toMatchObject({ isProcessorKnown: true, version: { storm: { limitedBy: 'processor' } } })
  expect(found.version.storm?.lastUs.value).toBeGreaterThan(70_000_000)
})

test('each edge of the site has its own link', async () => {
  const second = await site().enrolEdge()
  await linkOf(1_000)
  await linkOf(100, second)
  await site().report(...boots(5))
  expect(await predict({ devices: 10 })).toMatchObject({ edges: 2, linkMbps: 100 })
})

test('a version of another farm or organization does not exist, and absurd questions say what is wrong', async () => {
  const other = await site().other('owner')
  expect((await site().tryQuery('prediction.run', ask({ versionId: other.tenant.versionId }))).status).toBe(404)
  expect((await other.tryQuery('prediction.run', ask())).status).toBe(404)
  const refusal = async (input: Record<string, unknown>) => (await site().tryQuery('prediction.run', ask(input))).text
  expect(await refusal({ devices: 0 })).toContain('Predict at least 1 device.')
  expect(await refusal({ devices: 2_001 })).toContain('A prediction has at most 2000 devices.')
  expect(await refusal({ startsPerSecond: 0 })).toContain('more than 0 starts a second')
  expect(await refusal({ linkMbps: 0 })).toContain('at least 1 Mbit/s')
})

test('as many devices as a prediction may have are predicted', async () => {
  await linkOf(10_000)
  await site().report(...boots(20))
  const { version } = await predict({ devices: 2_000, startsPerSecond: 50 })
  expect(version.storm?.lastUs.value).toBeGreaterThan(43_000_000)
})
