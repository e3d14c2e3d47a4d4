import { expect, test } from 'vitest'
import { type SetOptions, watchSet } from '../../../test/seeded/boot-sets.ts'
import { randomNumbers } from '../../../test/seeded/random-numbers.ts'
import { emptyClass, type WatchedBoot, watchBoot } from './class-watch.ts'
import type { DevicePace } from './pace.ts'
import { timeOf } from './pace.ts'
import { smallestShift } from './smallest-shift.ts'

const seedsOf = (count: number) => Array.from({ length: count }, (_, index) => index + 1)
const quiet: SetOptions = { seed: 0, noise: 'lognormal', drift: 'none', deviceSpread: 0, cause: null }

test('causes of 10 % are found within 50 boots, by their names, and quiet sets have no false alarm', () => {
  const sets = 40
  let found = 0
  for (const seed of seedsOf(sets)) {
    const cause = { factor: seed % 2 ? ('version' as const) : ('setting' as const), slower: 0.1, failing: 0 }
    const result = watchSet({ ...quiet, seed, cause })
    expect(result.falseAlarms).toEqual([])
    if (!result.found || (result.affected ?? 0) > 50) continue
    found += 1
    expect([cause.factor, ...result.found.alsoChanged.map(({ factor }) => factor)]).toContain(cause.factor)
  }
  expect(found).toBeGreaterThanOrEqual(0.9 * sets)
  for (const seed of seedsOf(40)) expect(watchSet({ ...quiet, seed, noise: 'heavy tails' }).falseAlarms).toEqual([])
})

test('a version whose boots fail is found, and not as a slower one', () => {
  for (const seed of seedsOf(5)) {
    const cause = { factor: 'version' as const, slower: 0, failing: 0.3 }
    expect(watchSet({ ...quiet, seed, cause }).found).toMatchObject({ factor: 'version', kind: 'failing' })
  }
})

test('a faster version is no finding, and neither is one that only a few devices have', () => {
  for (const seed of seedsOf(5)) {
    const cause = { factor: 'version' as const, slower: -0.2, failing: 0 }
    expect(watchSet({ ...quiet, seed, cause }).found).toBeNull()
  }
})

const usual = { edge_release: '1', setting: '1', segment: null }

/** Watches boots that a test describes, 20 devices in turns. */
function watchAll(count: number, boot: (index: number) => Partial<WatchedBoot>) {
  const below = randomNumbers(99)
  const state = emptyClass()
  const paces: (DevicePace | null)[] = []
  const alarms = []
  for (let index = 0; index < count; index += 1) {
    const device = index % 20
    const watched: WatchedBoot = {
      deviceId: String(device),
      pace: paces[device] ?? null,
      atMs: index,
      time: timeOf(40_000_000 + below(4_000_000)),
      isFailed: false,
      values: { ...usual, version: '1' },
      ...boot(index),
    }
    const { alarm, pace } = watchBoot(state, watched)
    paces[device] = pace
    if (alarm) alarms.push({ ...alarm, index })
  }
  return { alarms, state }
}

test('one slow device is not taken for a slow version', () => {
  const { alarms } = watchAll(400, (index) =>
    index < 200 ? {} : { deviceId: 'x', pace: null, time: timeOf(80_000_000), values: { ...usual, version: '2' } },
  )
  expect(alarms).toEqual([])
})

test('what slows down devices of every version at once is not taken for a version', () => {
  const { alarms } = watchAll(600, (index) => ({
    time: timeOf(index < 300 ? 40_000_000 : 60_000_000),
    values: { ...usual, version: index >= 300 && index % 2 ? '2' : '1' },
  }))
  expect(alarms).toEqual([])
})

test('after a finding the class learns from the beginning, and finds the next one', () => {
  const { alarms } = watchAll(1_200, (index) => {
    const version = 1 + Math.floor(index / 400)
    return {
      time: timeOf(40_000_000 * 1.5 ** (version - 1) + (index % 7) * 500_000),
      values: { ...usual, version: String(version) },
    }
  })
  expect(alarms.map(({ value, kind }) => [value, kind])).toEqual([
    ['2', 'slower'],
    ['3', 'slower'],
  ])
  for (const { index } of alarms) expect(index % 400).toBeLessThan(20)
})

test('the state is bounded, whatever boots say', () => {
  const { state } = watchAll(5_000, (index) => ({
    time: index % 3 ? timeOf(1 + (index % 11) * 1e12) : null,
    isFailed: index % 2 === 0,
    deviceId: `device ${index}`,
    values: { version: `v${index}`, edge_release: `r${index}`, setting: `s${index}`, segment: `g${index % 50}` },
  }))
  expect(JSON.stringify(state).length).toBeLessThan(40_000)
  expect(JSON.parse(JSON.stringify(state))).toEqual(state)
})

test('the smallest shift that a class shows is found in nearly all sets, and half of it in few', () => {
  const below = randomNumbers(5)
  const times = Array.from({ length: 600 }, () => 100_000 + below(3_000))
  const figures = { times, spread: 1_000, tolerance: 10 }
  const shift = smallestShift(figures, { isKnown: false, affected: 50 }) ?? 0
  expect(shift).toBeGreaterThan(1.07)
  expect(shift).toBeLessThan(1.1)
  expect(smallestShift({ ...figures, times: times.slice(0, 10) }, { isKnown: false, affected: 50 })).toBeNull()
  const foundOf = (slower: number) =>
    seedsOf(30).filter((seed) => {
      const { found, affected } = watchSet({ ...quiet, seed, cause: { factor: 'version', slower, failing: 0 } })
      return found && (affected ?? 0) <= 50
    }).length
  expect(foundOf(shift - 1)).toBeGreaterThanOrEqual(25)
  expect(foundOf((shift - 1) / 2)).toBeLessThanOrEqual(10)
})
