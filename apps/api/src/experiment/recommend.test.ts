import { describe, expect, it } from 'vitest'
import type { Judgement } from './judge-cells.ts'
import { recommend } from './recommend.ts'

const cells = [[], ['codec=off', 'read-limit=44k'], ['cache=cold', 'read-ahead=off']]
const cell = {
  reference: 0,
  readyCount: 20,
  failedCount: 0,
  droppedCount: 0,
  medianUs: 1,
  p95Us: 1,
  phasesUs: [],
  pairCount: 20,
  difference: null,
  failsMore: false,
}
const faster = { difference: -1_250_000, low: -1_600_000, high: -90_000, isClear: true, chance: 0.01 }
const judged = (best: number | null, pairCount = 20): Judgement => ({
  cells: cells.map((_, index) => ({ ...cell, pairCount, difference: index === best ? faster : null })),
  pairsNeeded: 7,
  smallestUs: 340_000,
  best,
})

describe('recommend', () => {
  it('waits for the end', () => {
    expect(recommend(cells, judged(1), { isOver: false })).toMatchObject({ kind: 'wait', cell: null })
  })

  it('names the settings, the gain and its range', () => {
    expect(recommend(cells, judged(1), { isOver: true })).toEqual({
      kind: 'apply',
      cell: 1,
      sentence:
        'Use compression off, reads up to 44 KB: boots are ready 1.25 s sooner (90 ms to 1.60 s) than with the settings that the devices have.',
    })
    expect(recommend(cells, judged(2), { isOver: true }).sentence).toMatch(/^Use read-ahead off: .* with a cold cache/)
  })

  it('says what it could have shown, or that there were too few boots', () => {
    expect(recommend(cells, judged(null), { isOver: true })).toMatchObject({
      kind: 'keep',
      sentence:
        'No setting is better than what the devices have now. The smallest difference that this experiment could have shown is about 0.34 s.',
    })
    expect(recommend(cells, judged(null, 3), { isOver: true }).sentence).toContain('needs 7 pairs')
  })
})
