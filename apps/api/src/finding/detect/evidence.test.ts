import { expect, test } from 'vitest'
import { randomNumbers } from '../../../test/seeded/random-numbers.ts'
import { failingEvidence, scoreAmong, slowerLimit } from './evidence.ts'
import { normalCdf, normalQuantile } from './normal.ts'

function drawsOf(seed: number) {
  const below = randomNumbers(seed)
  const uniform = () => (below(0xffff_ffff) + 0.5) / 0xffff_ffff
  return { uniform, normal: () => normalQuantile(uniform()) }
}

test('the normal distribution and its quantiles are right to nine digits', () => {
  expect(normalCdf(0)).toBe(0.5)
  expect(normalCdf(1.959963984540054)).toBeCloseTo(0.975, 9)
  expect(normalCdf(-3.090232306167813)).toBeCloseTo(0.001, 10)
  expect(normalCdf(-6) / 9.865876450376946e-10).toBeCloseTo(1, 6)
  for (const share of [1e-9, 1e-5, 0.01, 0.3, 0.5, 0.7, 0.999])
    expect(normalCdf(normalQuantile(share)) / share).toBeCloseTo(1, 6)
})

test('scores of unchanged boots do not depend on the distribution of their times', () => {
  const scores = (change: (value: number) => number) => {
    const { normal } = drawsOf(77)
    const before: number[] = []
    return Array.from({ length: 300 }, () => {
      const value = change(normal())
      const score = scoreAmong(before, value)
      before.push(value)
      return score
    })
  }
  const plain = scores((value) => value)
  expect(scores(Math.exp)).toEqual(plain)
  expect(scores((value) => (value > 1 ? value * 1e9 : value))).toEqual(plain)
})

test('the tails of scores are no heavier than those of the normal distribution', () => {
  for (const before of [1, 2, 10, 64, 1_024])
    for (const shift of [-3, -1, -0.1, 0.1, 0.5, 1, 2, 4]) {
      let sum = 0
      for (let rank = 1; rank <= before + 1; rank += 1) sum += Math.exp(shift * normalQuantile(rank / (before + 2)))
      expect(sum / (before + 1)).toBeLessThanOrEqual(Math.exp(shift ** 2 / 2))
    }
})

test('unchanged boots exceed the limit about as often as their risk, looked at after each one', () => {
  const { normal } = drawsOf(4_711)
  const walks = 20_000
  for (const risk of [0.02, 0.1]) {
    const limit = slowerLimit(50, risk)
    let exceeded = 0
    for (let walk = 0; walk < walks; walk += 1) {
      let sum = 0
      let isOver = false
      for (let boot = 0; boot < 50; boot += 1) {
        sum += normal()
        isOver ||= sum >= limit
      }
      if (isOver) exceeded += 1
    }
    expect(exceeded / walks).toBeLessThan(1.15 * risk)
    expect(exceeded / walks).toBeGreaterThan(0.8 * risk)
  }
})

test('boots that fail as often as before seldom have evidence of the opposite, looked at after each one', () => {
  const { uniform } = drawsOf(815)
  const failuresOf = (count: number, rate: number) =>
    Array.from({ length: count }, () => uniform() < rate).filter(Boolean).length
  for (const rate of [0.02, 0.2]) {
    let found = 0
    for (let round = 0; round < 400; round += 1) {
      const before = { failures: failuresOf(300, rate), count: 300 }
      let failures = 0
      let isOver = false
      for (let count = 1; count <= 50; count += 1) {
        failures += failuresOf(1, rate)
        isOver ||= failingEvidence({ failures, count }, before) >= Math.log(20)
      }
      if (isOver) found += 1
    }
    expect(found / 400).toBeLessThan(0.05)
  }
})

test('evidence of failures grows with failures, and shrinks with those before', () => {
  const of = (failures: number, failuresBefore: number) =>
    failingEvidence({ failures, count: 20 }, { failures: failuresBefore, count: 500 })
  expect(of(0, 10)).toBeLessThan(0)
  expect(of(6, 10)).toBeGreaterThan(8)
  expect(of(6, 100)).toBeLessThan(1)
  expect(of(20, 0)).toBeGreaterThan(of(6, 0))
  expect(Number.isFinite(failingEvidence({ failures: 50, count: 50 }, { failures: 0, count: 0 }))).toBe(true)
})
