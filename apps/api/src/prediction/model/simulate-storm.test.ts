import { expect, test } from 'vitest'
import { gigabit, recordedBoot } from '../../../test/seeded/recorded-boots.ts'
import { runInTurns } from '../run-in-turns.ts'
import { type EdgeLimits, type StormDevice, type StormResult, simulateStorm } from './simulate-storm.ts'
import { type Trace, traceOf } from './trace.ts'

const limits: EdgeLimits = { bytesPerUs: gigabit, deviceBytesPerUs: gigabit, coldUsPerByte: null }
const storm = (devices: StormDevice[], changes: Partial<EdgeLimits> = {}): Promise<StormResult> =>
  runInTurns(simulateStorm(devices, { ...limits, ...changes }))
const devicesOf = (trace: Trace, count: number): StormDevice[] =>
  Array.from({ length: count }, () => ({ startUs: 0, trace, weight: 1 }))

/** Steps that only transfer. */
function transfer(...bytes: number[]): Trace {
  const numbers = (values: number[]) => Float64Array.from(values)
  const zeros = bytes.map(() => 0)
  const from = bytes.map((_, index) => bytes.slice(0, index).reduce((sum, one) => sum + one, 0))
  return {
    steps: bytes.length,
    besideUs: numbers(zeros),
    afterUs: numbers(zeros),
    bytes: numbers(bytes),
    diskFrom: numbers(from),
    diskBytes: numbers(bytes),
    totalUs: 0,
  }
}

test.each([0, 0.3, 0.9])('a boot alone takes as long as it took, whatever overlaps (%s)', async (overlap) => {
  const boot = recordedBoot()
  const { totalUs, lastUs } = await storm(devicesOf(traceOf(boot, { reach: 1, overlap }), 1))
  expect(totalUs[0]).toBeCloseTo(boot.totalUs, 0)
  expect(lastUs).toBeCloseTo(boot.totalUs, 0)
})

test('a link is shared evenly, and its bytes take the time of its speed', async () => {
  const { totalUs, peakBytesPerUs } = await storm(devicesOf(transfer(125_000_000), 4))
  for (const us of totalUs) expect(us).toBeCloseTo(4_000_000, 0)
  expect(peakBytesPerUs).toBeCloseTo(gigabit, 6)
})

test('a transfer that ends leaves its share to the others', async () => {
  const small = { startUs: 0, trace: transfer(125_000), weight: 1 }
  const large = { startUs: 0, trace: transfer(375_000), weight: 1 }
  const late = { startUs: 3_000, trace: transfer(125_000), weight: 1 }
  const { totalUs } = await storm([small, large, late])
  // 2 ms shared by two, 1 ms alone; 125 kB of the large one are left, shared with the late one.
  expect(totalUs[0]).toBeCloseTo(2_000, 6)
  expect(totalUs[1]).toBeCloseTo(5_000, 6)
  expect(totalUs[2]).toBeCloseTo(2_000, 6)
})

test('shares follow the weights, and no device gets more than its own link carries', async () => {
  const trace = transfer(100_000)
  const unequal = [1, 3].map((weight) => ({ startUs: 0, trace, weight }))
  const { totalUs } = await storm(unequal, { bytesPerUs: 100 })
  expect(totalUs[1]).toBeCloseTo(100_000 / 75, 6)
  expect(totalUs[0]).toBeCloseTo(2_000, 6)
  expect((await storm(devicesOf(trace, 2), { deviceBytesPerUs: 10 })).totalUs[0]).toBeCloseTo(10_000, 6)
})

test('a cold disk is read once: who needs its bytes meanwhile waits, who comes later does not', async () => {
  const trace = transfer(1_000, 1_000)
  const devices = [
    { startUs: 0, trace, weight: 1 },
    { startUs: 1_000, trace, weight: 1 },
    { startUs: 1_000_000, trace, weight: 1 },
  ]
  const { storageUs, totalUs } = await storm(devices, { coldUsPerByte: 2 })
  expect(storageUs[0]).toBeCloseTo(4_000, 6)
  expect(storageUs[1]).toBeGreaterThan(2_000)
  expect(storageUs[1]).toBeLessThan(3_100)
  expect(storageUs[2]).toBe(0)
  expect(totalUs[2]).toBeCloseTo(16, 6)
})

test('devices that start one after the other do not wait for each other', async () => {
  const trace = traceOf(recordedBoot(), { reach: 1, overlap: 0.5 })
  const apart = Array.from({ length: 5 }, (_, index) => ({ startUs: index * 10_000_000, trace, weight: 1 }))
  const { totalUs, lastUs } = await storm(apart)
  for (const us of totalUs) expect(us).toBeCloseTo(4_000_000, 0)
  expect(lastUs).toBeCloseTo(44_000_000, 0)
})

test('a storm is no faster than its bytes, nor than a device alone', async () => {
  const trace = traceOf(recordedBoot(), { reach: 1, overlap: 0.5 })
  for (const count of [2, 20, 200]) {
    const { totalUs } = await storm(devicesOf(trace, count))
    const bytes = trace.bytes.reduce((sum, one) => sum + one, 0)
    expect(Math.min(...totalUs)).toBeGreaterThanOrEqual(3_999_999)
    expect(Math.max(...totalUs)).toBeGreaterThanOrEqual((count * bytes) / gigabit)
    expect(Math.max(...totalUs)).toBeLessThanOrEqual((count * bytes) / gigabit + 4_000_001)
  }
})
