import { countStates, stragglersOf } from './storm-figures.ts'
import type { Storm, StormCell, StormModel } from './storm-model.ts'
import { stateOrder } from './storm-states.ts'

/** What the page, its table and a wall show of a storm at one moment. */
export interface StormView {
  cells: StormCell[]
  counts: ReturnType<typeof countStates>
  kinds: Storm['kinds']
  slowKeys: ReadonlySet<string>
  stragglers: ReturnType<typeof stragglersOf>
  nowMs: number
}

export function viewOf(
  { cells, storm }: StormModel,
  { nowMs, byPhase }: { nowMs: number; byPhase: boolean },
): StormView {
  const stragglers = stragglersOf(cells, storm.kinds, nowMs)
  return {
    cells: byPhase ? sortedByPhase(cells) : cells,
    counts: countStates(cells),
    kinds: storm.kinds,
    slowKeys: new Set(stragglers.map(({ cell }) => cell.key)),
    stragglers,
    nowMs,
  }
}

const rank = new Map(stateOrder.map((state, index) => [state, index]))

function sortedByPhase(cells: StormCell[]): StormCell[] {
  return cells.toSorted((a, b) => (rank.get(a.state) ?? 0) - (rank.get(b.state) ?? 0))
}
