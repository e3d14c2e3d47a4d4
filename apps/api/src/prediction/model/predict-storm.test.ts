import { expect, test } from 'vitest'
import { gigabit, quietBoots, recordedBoot } from '../../../test/seeded/recorded-boots.ts'
import { runInTurns } from '../run-in-turns.ts'
import { predictStorm, type StormQuestion } from './predict-storm.ts'
import { median } from './quantiles.ts'
import { bytesOf, type RecordedBoot } from './recorded-boot.ts'
import { simulateStorm } from './simulate-storm.ts'
import { bootsMin, siteModelOf } from './site-model.ts'
import { traceOf } from './trace.ts'

const edge = { linkBytesPerUs: gigabit, processorBytesPerUs: null }
const question: StormQuestion = {
  versionId: 'version',
  devices: 1,
  startsPerSecond: null,
  isCold: false,
  edges: [edge],
  deviceBytesPerUs: null,
}
const modelOf = (boots: RecordedBoot[]) => runInTurns(siteModelOf(boots))
const predict = async (boots: RecordedBoot[], changes: Partial<StormQuestion> = {}) =>
  runInTurns(predictStorm(await modelOf(boots), { ...question, ...changes }))

const startEveryMs = 50

/**
 * A storm of the past, of devices that start one after the other: what they would have recorded on a link of which
 * they reach this part. Each gets its bytes evenly from its first second on.
 */
async function pastStorm(count: number, { reach, overlap }: { reach: number; overlap: number }) {
  const trace = traceOf(recordedBoot(), { reach, overlap })
  const bytesPerUs = reach * gigabit
  const limits = { bytesPerUs, deviceBytesPerUs: bytesPerUs, coldUsPerByte: null }
  const devices = Array.from({ length: count }, (_, index) => ({
    startUs: index * startEveryMs * 1000,
    trace,
    weight: 1,
  }))
  const { totalUs } = await runInTurns(simulateStorm(devices, limits))
  const widthUs = 800_000
  return [...totalUs].map((us, index): RecordedBoot => {
    const steps = Math.ceil(us / widthUs)
    const bytes = Array.from({ length: steps }, (_, step) => (step === 0 ? 0 : bytesOf(recordedBoot()) / (steps - 1)))
    return recordedBoot({ startedAtMs: 10_000_000 + index * startEveryMs, totalUs: us, widthUs, bytes })
  })
}

test('a device alone takes what its boots took', async () => {
  const { p50Us, lastUs, limitedBy, parts } = await predict(quietBoots(8))
  expect(p50Us.value / 4_070_000).toBeCloseTo(1, 1)
  expect(p50Us.low).toBeLessThan(p50Us.value)
  expect(p50Us.high).toBeGreaterThan(p50Us.value)
  expect(lastUs.value).toBeCloseTo(p50Us.value, -1)
  expect(limitedBy).toBe('device')
  expect(parts.sharedUs).toBeLessThan(50_000)
})

test('a storm that fills the link takes the time of its bytes, and says what limits it', async () => {
  const { lastUs, linkShare, limitedBy, bytes } = await predict(quietBoots(8), { devices: 200 })
  // 15 MB each.
  expect(bytes).toBeCloseTo(3_000_000_000, -1)
  expect(lastUs.value).toBeGreaterThan(24_000_000)
  expect(lastUs.value).toBeLessThan(32_000_000)
  expect(linkShare).toBeGreaterThan(0.95)
  expect(limitedBy).toBe('link')
})

test('a slow processor limits like a slow link, and is named', async () => {
  const edges = [{ ...edge, processorBytesPerUs: 50 }]
  const { lastUs, limitedBy } = await predict(quietBoots(8), { devices: 100, edges })
  expect(limitedBy).toBe('processor')
  expect(lastUs.value).toBeGreaterThan(30_000_000)
})

test('two edges share the devices', async () => {
  const one = await predict(quietBoots(8), { devices: 200 })
  const two = await predict(quietBoots(8), { devices: 200, edges: [edge, edge] })
  expect(two.lastUs.value / one.lastUs.value).toBeGreaterThan(0.5)
  expect(two.lastUs.value / one.lastUs.value).toBeLessThan(0.7)
})

test('devices that start slowly wait for nobody', async () => {
  const { p50Us, lastUs } = await predict(quietBoots(8), { devices: 30, startsPerSecond: 1 })
  expect(p50Us.value).toBeLessThan(4_700_000)
  expect(lastUs.value).toBeGreaterThan(32_500_000)
})

test('a cold edge costs a storm what it cost a boot', async () => {
  const cold = [0, 1].map((index) =>
    recordedBoot({ isCold: true, totalUs: 6_000_000, startedAtMs: 1e9 + index * 60_000 }),
  )
  const boots = [...quietBoots(8), ...cold]
  const { parts, limitedBy, p50Us } = await predict(boots, { isCold: true })
  expect(p50Us.value).toBeGreaterThan(5_200_000)
  expect(p50Us.value).toBeLessThan(6_400_000)
  expect(limitedBy).toBe('storage')
  const many = await predict(boots, { isCold: true, devices: 20 })
  expect(many.parts.storageUs).toBeLessThan(1.6 * parts.storageUs)
})

test('a storm of the past teaches how much of the link boots reach', async () => {
  const past = await pastStorm(60, { reach: 0.7, overlap: 0.3 })
  const boots = [...quietBoots(8), ...past]
  const model = await modelOf(boots)
  expect(model.stormBoots).toBe(60)
  expect(model.reach).toBeGreaterThan(0.63)
  expect(model.reach).toBeLessThan(0.77)
  // The boots of the storm are no measure of a boot alone.
  expect(model.quietBoots.get('version')).toBe(8)
  const found = await predict(boots, { devices: 120, startsPerSecond: 1000 / startEveryMs })
  const real = median((await pastStorm(120, { reach: 0.7, overlap: 0.3 })).map(({ totalUs }) => totalUs))
  expect(Math.abs(found.p50Us.value / real - 1)).toBeLessThan(0.1)
  const unsure = await predict(quietBoots(8), { devices: 120, startsPerSecond: 1000 / startEveryMs })
  expect(found.p50Us.high / found.p50Us.low).toBeLessThan(unsure.p50Us.high / unsure.p50Us.low)
})

test('the same question has the same answer', async () => {
  expect(await predict(quietBoots(8), { devices: 50 })).toEqual(await predict(quietBoots(8), { devices: 50 }))
})

test('boots beside others do not count as alone', async () => {
  const together = Array.from({ length: 40 }, () => recordedBoot())
  const model = await modelOf(together)
  expect(model.quietBoots.get('version') ?? 0).toBeLessThan(bootsMin)
})

test('a prediction of 500 devices takes pauses, each after a bounded piece of work', async () => {
  const work = predictStorm(await modelOf(quietBoots(8)), { ...question, devices: 500 })
  let pauses = 0
  while (!work.next().done) pauses += 1
  expect(pauses).toBeGreaterThan(10)
})
