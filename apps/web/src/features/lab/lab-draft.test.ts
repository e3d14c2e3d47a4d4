import { describe, expect, it } from 'vitest'
import { asNow, bootCountOf, cellCountOf, estimateUs, factorsOf, isOneAtATime, medianUs } from './lab-draft.ts'

describe('factorsOf', () => {
  it('leaves out settings without a level, and keeps the order of the choices', () => {
    expect(factorsOf({ codec: ['lz4', asNow], 'read-limit': ['44k', '4k'], mtu: [] })).toEqual([
      { setting: 'read-limit', values: ['4k', '44k'] },
      { setting: 'codec', values: [null, 'lz4'] },
    ])
  })
})

describe('cellCountOf', () => {
  it.each([
    [{}, 0],
    [{ codec: ['off', 'lz4'] }, 3],
    [{ codec: [asNow, 'lz4'] }, 2],
    [{ codec: [asNow, 'lz4'], 'read-limit': ['4k', '8k'] }, 5],
    [{ cache: ['cold', 'warm'] }, 2],
    [{ cache: ['cold', 'warm'], codec: ['off'] }, 4],
    [{ cache: ['cold'], codec: [asNow, 'off'] }, 2],
  ])('counts %j as %i', (matrix, count) => {
    expect(cellCountOf(factorsOf(matrix))).toBe(count)
  })
})

describe('estimate', () => {
  it('counts devices that boot at once only once', () => {
    const size = { devices: 5, cells: 2, repetitions: 10, atOnce: 2 }
    expect(bootCountOf(size)).toBe(100)
    expect(estimateUs(size, 25_000_000)).toBe(60 * 40_000_000)
    expect(estimateUs({ ...size, devices: 0 }, null)).toBe(0)
  })

  it('boots one device at a time where the cache is varied', () => {
    expect(isOneAtATime(factorsOf({ cache: ['cold'] }))).toBe(true)
    expect(isOneAtATime(factorsOf({ codec: ['off'] }))).toBe(false)
  })

  it('takes the median of the boots there are', () => {
    expect(medianUs([])).toBeNull()
    expect(medianUs([5, 1, 9])).toBe(5)
  })
})
