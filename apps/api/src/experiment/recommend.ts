import type { Judgement } from './judge-cells.ts'
import { settingsOf } from './judge-cells.ts'
import { type Cell, conditionOf } from './plan-experiment.ts'
import type { ExperimentDetail } from './schema.ts'
import { cellTitle, timeText } from './setting-text.ts'

/** One sentence that says what to do: pure. */
export function recommend(
  cells: Cell[],
  { cells: judged, best, smallestUs, pairsNeeded }: Judgement,
  { isOver }: { isOver: boolean },
): ExperimentDetail['recommendation'] {
  if (!isOver)
    return {
      kind: 'wait',
      cell: null,
      sentence: 'The experiment is not over: what looks clear now may be chance, because it was looked at early.',
    }
  const cell = cells[best ?? -1]
  const difference = judged[best ?? -1]?.difference
  if (best !== null && cell && difference) {
    const when = conditionOf(cell).length > 0 ? ` with a ${cellTitle(conditionOf(cell))}` : ''
    const range = `${timeText(difference.high)} to ${timeText(difference.low)}`
    return {
      kind: 'apply',
      cell: best,
      sentence: `Use ${cellTitle(settingsOf(cell))}: boots are ready ${timeText(difference.difference)} sooner${when} (${range}) than with the settings that the devices have.`,
    }
  }
  const most = Math.max(0, ...judged.map(({ pairCount }) => pairCount))
  if (most < pairsNeeded)
    return {
      kind: 'keep',
      cell: null,
      sentence: `Too few boots: an interval for so many cells needs ${pairsNeeded} pairs of ready boots, and the most that a cell has is ${most}. Repeat the experiment with more repetitions, or with fewer values.`,
    }
  return {
    kind: 'keep',
    cell: null,
    sentence: `No setting is better than what the devices have now. The smallest difference that this experiment could have shown is about ${timeText(smallestUs ?? 0)}.`,
  }
}
