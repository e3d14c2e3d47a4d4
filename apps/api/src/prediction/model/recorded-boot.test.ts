import { expect, test } from 'vitest'
import { type ReportedBoot, recordedBootOf, stepsMax } from './recorded-boot.ts'
import { diskBytesOf } from './trace.ts'

const reported: ReportedBoot = {
  versionId: 'version',
  edgeId: 'edge',
  linkBytesPerUs: 125,
  startedAtMs: 5,
  isCold: false,
  phases: [
    { name: 'dhcp', startUs: 0, durationUs: 100_000 },
    { name: 'stage2', startUs: 150_000, durationUs: 250_000 },
    { name: 'ready', startUs: 400_000 },
  ],
  series: { widthUs: 100_000, bytes: [100, 200, 300, 400] },
}

test('a boot is what its edge recorded until it was ready', () => {
  const boot = recordedBootOf(reported)
  expect(boot).toMatchObject({ totalUs: 400_000, streamFromUs: 150_000, bytes: [100, 200, 300, 400], coldUs: 0 })
  // Half of the second step belongs to the stream.
  expect(boot && diskBytesOf(boot)).toBeCloseTo(800, 6)
})

test('waits for a disk are those of all phases of the report', () => {
  const cold = { firstBucket: 10, counts: [2], maxUs: 900, sumUs: 1_500 }
  const phases = [
    { name: 'initramfs' as const, cold },
    { name: 'system' as const, cold },
  ]
  expect(recordedBootOf({ ...reported, readTimes: { phases } })?.coldUs).toBe(3_000)
  expect(recordedBootOf({ ...reported, readTimes: { cold } })?.coldUs).toBe(1_500)
})

test('a boot that was not ready, has no stream or no series, or a series that is no edge’s, is none', () => {
  const without = (name: string) => reported.phases.filter((phase) => phase.name !== name)
  expect(recordedBootOf({ ...reported, phases: without('ready') })).toBeNull()
  expect(recordedBootOf({ ...reported, phases: without('stage2') })).toBeNull()
  expect(recordedBootOf({ ...reported, series: undefined })).toBeNull()
  expect(recordedBootOf({ ...reported, series: { widthUs: 1, reads: [1] } })).toBeNull()
  const long = Array.from({ length: stepsMax + 1 }, () => 1)
  expect(recordedBootOf({ ...reported, series: { widthUs: 1, bytes: long } })).toBeNull()
})
