import { describe, expect, it } from 'vitest'
import { type EndedTrial, judgeCells } from './judge-cells.ts'

const cells = [[], ['read-limit=4k'], ['codec=lz4']]
/** Devices of 10 and 20 s: what differs between them is no part of a cell's difference. */
const trials = ['a', 'b']
  .flatMap((deviceId, device) =>
    Array.from({ length: 6 }, (_, repetition) =>
      [0, 2_000_000, -1_000_000].map((extra, cell): EndedTrial => {
        const jitter = ((repetition * 7 + cell * 3 + device) % 5) * 10_000
        const durationUs = 10_000_000 * (device + 1) + extra + jitter
        const phases = [{ name: 'stage2', durationUs: durationUs / 2 }]
        return { cell, deviceId, repetition, state: 'ready', durationUs, phases }
      }),
    ),
  )
  .flat()

describe('judgeCells', () => {
  it('compares each cell with what devices have now, pair by pair', () => {
    const { cells: judged, best } = judgeCells(cells, trials)
    expect(judged[0]).toMatchObject({ reference: 0, readyCount: 12, difference: null, pairCount: 0 })
    expect(judged[1]?.pairCount).toBe(12)
    expect(judged[1]?.difference?.difference).toBeGreaterThan(1_950_000)
    expect(judged[1]?.difference?.low).toBeGreaterThan(1_900_000)
    expect(judged[2]?.difference?.high).toBeLessThan(-900_000)
    expect(judged[2]?.phasesUs.some((us) => us !== null && us > 4_000_000)).toBe(true)
    expect(best).toBe(2)
  })

  it('recommends nothing that is not clearly faster, and says what it could have shown', () => {
    const noisy = trials.map((trial) =>
      trial.cell === 2
        ? { ...trial, durationUs: (trial.durationUs ?? 0) + 1_000_000 + (trial.repetition % 2 ? 1 : -1) * 900_000 }
        : trial,
    )
    const { best, smallestUs } = judgeCells(cells, noisy)
    expect(best).toBeNull()
    expect(smallestUs).toBeGreaterThan(500_000)
    expect(smallestUs).toBeLessThan(3_000_000)
  })

  it('recommends nothing that fails clearly more often', () => {
    const failing = [
      ...trials,
      ...Array.from({ length: 30 }, (_, repetition): EndedTrial => {
        return { cell: 2, deviceId: 'c', repetition, state: 'failed', durationUs: null, phases: [] }
      }),
    ]
    const { cells: judged, best } = judgeCells(cells, failing)
    expect(judged[2]).toMatchObject({ failedCount: 30, failsMore: true })
    expect(best).toBeNull()
  })

  it('leaves out boots that were dropped, and pairs of which one failed', () => {
    const dropped = trials.map((trial): EndedTrial => {
      if (trial.cell === 1 && trial.repetition < 2) return { ...trial, state: 'dropped', durationUs: null }
      if (trial.cell === 0 && trial.repetition === 2) return { ...trial, state: 'failed', durationUs: null }
      return trial
    })
    const { cells: judged } = judgeCells(cells, dropped)
    expect(judged[1]).toMatchObject({ droppedCount: 4, readyCount: 8, pairCount: 6 })
  })

  it('recommends what helps cold boots, and never that they be cold', () => {
    const conditions = [['cache=cold'], ['cache=warm'], ['cache=cold', 'codec=lz4']]
    const times = [30_000_000, 10_000_000, 25_000_000]
    const run = Array.from({ length: 10 }, (_, repetition) =>
      times.map((us, cell): EndedTrial => {
        return { cell, deviceId: 'a', repetition, state: 'ready', durationUs: us + repetition * 1000, phases: [] }
      }),
    ).flat()
    const { cells: judged, best } = judgeCells(conditions, run)
    expect(judged.map(({ reference }) => reference)).toEqual([0, 1, 0])
    expect(best).toBe(2)
  })

  it('has nothing to say before the first boot', () => {
    expect(judgeCells(cells, [])).toMatchObject({ best: null, smallestUs: null, pairsNeeded: 7 })
  })
})
