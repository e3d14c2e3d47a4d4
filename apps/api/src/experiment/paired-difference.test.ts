import { describe, expect, it } from 'vitest'
import { pairedDifference, pairsNeeded, smallestShown } from './paired-difference.ts'

/** Mulberry32, and the sum of twelve: about normal, with deviation 1. */
function noise(seed: number): () => number {
  let state = seed
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return () => Array.from({ length: 12 }, uniform).reduce((sum, value) => sum + value, -6)
}

describe('pairedDifference', () => {
  it('gives the example of the book: Hamilton depression scale, nine patients', () => {
    // Hollander, Wolfe and Chicken, table 3.1: estimate -0.46, and -0.786 to -0.010 with 0.961.
    const before = [1.83, 0.5, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.3]
    const after = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]
    const result = pairedDifference(
      after.map((value, index) => value - (before[index] ?? 0)),
      1,
    )
    expect(result?.difference).toBeCloseTo(-0.46, 2)
    expect(result?.low).toBeCloseTo(-0.786, 3)
    expect(result?.high).toBeCloseTo(-0.01, 3)
    expect(result?.chance).toBeCloseTo(0.0391, 4)
    expect(result?.isClear).toBe(true)
  })

  it('has no interval with too few pairs, and needs more for more cells', () => {
    expect(pairsNeeded(1)).toBe(6)
    expect(pairsNeeded(10)).toBe(9)
    expect(pairedDifference([1, 2, 3, 4, 5], 1)).toBeNull()
    expect(pairedDifference([], 1)).toBeNull()
    expect(pairedDifference([1, 2, 3, 4, 5, 6], 1)).toMatchObject({ low: 1, high: 6, difference: 3.5, isClear: true })
    expect(pairedDifference([1, 2, 3, 4, 5, 6, 7, 8], 10)).toBeNull()
  })

  it.each([12, 80])('holds the true difference at least 19 times of 20, with %i pairs', (pairs) => {
    const draw = noise(1)
    let missed = 0
    for (let round = 0; round < 400; round += 1) {
      // Every tenth boot takes much longer, as boots do.
      const values = Array.from({ length: pairs }, (_, index) => 3 + draw() + (index % 10 === 9 ? 20 * draw() : 0))
      const result = pairedDifference(values, 1)
      if (!result || result.low > 3 || result.high < 3) missed += 1
    }
    expect(missed).toBeLessThan(34)
  })

  it('allows for the number of cells: none of ten equal ones is clear in most experiments', () => {
    const draw = noise(2)
    let alarms = 0
    for (let round = 0; round < 200; round += 1) {
      const cells = Array.from({ length: 10 }, () => pairedDifference(Array.from({ length: 15 }, draw), 10))
      if (cells.some((result) => result?.isClear)) alarms += 1
    }
    expect(alarms).toBeLessThan(21)
  })

  it('finds nothing where nothing differs', () => {
    expect(pairedDifference([0, 0, 0, 0, 0, 0, 0], 1)).toMatchObject({ difference: 0, isClear: false, chance: 1 })
  })

  it('agrees with itself where exact shares end', () => {
    const draw = noise(3)
    const values = Array.from({ length: 60 }, () => draw() + 0.4)
    const exact = pairedDifference(values, 1)
    const about = pairedDifference([...values, exact?.difference ?? 0], 1)
    expect(about?.chance).toBeGreaterThan((exact?.chance ?? 0) / 2)
    expect(about?.chance).toBeLessThan((exact?.chance ?? 0) * 2)
    expect(Math.abs((about?.low ?? 0) - (exact?.low ?? 0))).toBeLessThan(0.05)
  })
})

describe('smallestShown', () => {
  it('is shown in about four of five experiments', () => {
    const draw = noise(4)
    const smallest = smallestShown(Array.from({ length: 20 }, draw), 1) ?? 0
    expect(smallest).toBeGreaterThan(0.4)
    expect(smallest).toBeLessThan(1)
    const truth = (2.8 * Math.sqrt(Math.PI / 3)) / Math.sqrt(20)
    let shown = 0
    for (let round = 0; round < 300; round += 1)
      if (
        pairedDifference(
          Array.from({ length: 20 }, () => truth + draw()),
          1,
        )?.isClear
      )
        shown += 1
    expect(shown / 300).toBeGreaterThan(0.7)
    expect(shown / 300).toBeLessThan(0.9)
  })

  it('needs two pairs', () => {
    expect(smallestShown([1], 1)).toBeNull()
  })
})
