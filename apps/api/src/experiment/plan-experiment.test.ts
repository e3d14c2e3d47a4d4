import { describe, expect, it } from 'vitest'
import { cellsOf, conditionOf, durationOf, planTrials, referenceOf } from './plan-experiment.ts'

describe('cellsOf', () => {
  it('combines the values of all factors, and puts what devices have now first', () => {
    const cells = cellsOf([
      { setting: 'read-limit', values: ['4k', null] },
      { setting: 'codec', values: ['off', 'lz4'] },
    ])
    expect(cells).toEqual([
      [],
      ['codec=off', 'read-limit=4k'],
      ['codec=lz4', 'read-limit=4k'],
      ['codec=off'],
      ['codec=lz4'],
    ])
  })

  it('compares each condition with itself: a cold boot is no measure for a warm one', () => {
    const cells = cellsOf([
      { setting: 'cache', values: ['cold', 'warm'] },
      { setting: 'codec', values: ['off'] },
    ])
    expect(cells).toEqual([['cache=cold'], ['cache=warm'], ['cache=cold', 'codec=off'], ['cache=warm', 'codec=off']])
    expect(cells.map((cell) => referenceOf(cells, cell))).toEqual([0, 1, 0, 1])
    expect(conditionOf(['cache=cold', 'codec=off'])).toEqual(['cache=cold'])
  })

  it('has a value that was given twice once', () => {
    expect(cellsOf([{ setting: 'codec', values: ['off', null, 'off'] }])).toEqual([[], ['codec=off']])
  })
})

describe('planTrials', () => {
  const size = { devices: 3, cells: 4, repetitions: 5 }

  it('boots each device once with each cell in each repetition', () => {
    const trials = planTrials(size, 7)
    expect(trials).toHaveLength(60)
    for (let device = 0; device < 3; device += 1) {
      const own = trials.filter(({ deviceIndex }) => deviceIndex === device)
      expect(own.map(({ position }) => position)).toEqual(Array.from({ length: 20 }, (_, index) => index))
      for (let repetition = 0; repetition < 5; repetition += 1) {
        const block = own.slice(4 * repetition, 4 * repetition + 4)
        expect(block.every((trial) => trial.repetition === repetition)).toBe(true)
        expect(block.map(({ cell }) => cell).toSorted()).toEqual([0, 1, 2, 3])
      }
    }
  })

  it('repeats itself with the same seed, and only then', () => {
    expect(planTrials(size, 7)).toEqual(planTrials(size, 7))
    expect(planTrials(size, 7)).not.toEqual(planTrials(size, 8))
  })

  it('puts every cell in every place about equally often', () => {
    const trials = planTrials({ devices: 1, cells: 3, repetitions: 3000 }, 1)
    for (let cell = 0; cell < 3; cell += 1)
      for (let place = 0; place < 3; place += 1) {
        const count = trials.filter((trial) => trial.cell === cell && trial.position % 3 === place).length
        expect(count).toBeGreaterThan(900)
        expect(count).toBeLessThan(1100)
      }
  })
})

describe('durationOf', () => {
  it('counts devices that boot at once only once', () => {
    const size = { devices: 6, cells: 2, repetitions: 5 }
    expect(durationOf(size, 6, 15_000)).toBe(300_000)
    expect(durationOf(size, 4, 15_000)).toBe(600_000)
    expect(durationOf(size, 100, 15_000)).toBe(300_000)
  })
})
