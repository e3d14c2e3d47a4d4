import { bootPhases } from '@bootfarm/proto/boot-phases'
import { medianOf, quantileOf, shareDifference } from '../explore/public.ts'
import { type PairedDifference, pairedDifference, pairsNeeded, smallestShown } from './paired-difference.ts'
import { type Cell, conditionOf, referenceOf } from './plan-experiment.ts'

/** What the boots of an experiment say about its cells: pure. */

export interface EndedTrial {
  cell: number
  deviceId: string
  repetition: number
  state: 'ready' | 'failed' | 'dropped'
  /** Null for a boot that did not become ready. */
  durationUs: number | null
  phases: { name: string; durationUs?: number | null | undefined }[]
}

export interface JudgedCell {
  /** The cell with which it is compared; itself for such a one. */
  reference: number
  readyCount: number
  failedCount: number
  droppedCount: number
  medianUs: number | null
  p95Us: number | null
  /** Median of each phase over the ready boots, in the order of `bootPhases`. */
  phasesUs: (number | null)[]
  /** Pairs of ready boots of one device in one repetition. */
  pairCount: number
  /** Null for a reference, and with too few pairs. */
  difference: PairedDifference | null
  /** It fails clearly more often than its reference. */
  failsMore: boolean
}

export interface Judgement {
  cells: JudgedCell[]
  /** Pairs that an interval needs. */
  pairsNeeded: number
  /** The smallest difference that such an experiment shows in four of five cases, µs; null: too few boots. */
  smallestUs: number | null
  /** The cell that is clearly faster, the one with the largest sure gain; null: none. */
  best: number | null
}

/** @param cells as planned; their number may not change */
export function judgeCells(cells: Cell[], trials: EndedTrial[]): Judgement {
  const comparedCount = Math.max(1, cells.filter((cell, index) => referenceOf(cells, cell) !== index).length)
  const pairs = cells.map((cell, index) => pairsOf(trials, { cell: index, reference: referenceOf(cells, cell) }))
  const judged = cells.map((cell, index) => {
    const reference = referenceOf(cells, cell)
    return judge(trials, { index, reference, comparedCount, differences: pairs[index] ?? [] })
  })
  const spreads = pairs.flatMap((differences, index) =>
    judged[index]?.reference === index ? [] : (smallestShown(differences, comparedCount) ?? []),
  )
  return {
    cells: judged,
    pairsNeeded: pairsNeeded(comparedCount),
    smallestUs: spreads.length === 0 ? null : Math.round(Math.max(...spreads)),
    best: bestOf(cells, judged),
  }
}

/** Second less first: the cell's boot less that of its reference. */
function pairsOf(trials: EndedTrial[], { cell, reference }: { cell: number; reference: number }): number[] {
  if (cell === reference) return []
  const blockOf = ({ deviceId, repetition }: EndedTrial) => `${deviceId} ${repetition}`
  const before = new Map(
    trials
      .filter((trial) => trial.cell === reference && trial.state === 'ready')
      .map((trial) => [blockOf(trial), trial.durationUs]),
  )
  return trials
    .filter((trial) => trial.cell === cell && trial.state === 'ready')
    .flatMap((trial) => {
      const other = before.get(blockOf(trial)) ?? null
      return other === null || trial.durationUs === null ? [] : [trial.durationUs - other]
    })
}

interface Asked {
  index: number
  reference: number
  comparedCount: number
  differences: number[]
}

function judge(trials: EndedTrial[], { index, reference, comparedCount, differences }: Asked): JudgedCell {
  const own = trials.filter(({ cell }) => cell === index)
  const ready = own.filter(({ state }) => state === 'ready')
  const durations = ready.flatMap(({ durationUs }) => durationUs ?? []).toSorted((a, b) => a - b)
  const [before, after] = [partOf(trials, reference), partOf(trials, index)]
  return {
    reference,
    readyCount: ready.length,
    failedCount: after.count,
    droppedCount: own.filter(({ state }) => state === 'dropped').length,
    medianUs: medianOf(durations),
    p95Us: quantileOf(durations, 0.95),
    phasesUs: bootPhases.map((name) =>
      medianOf(
        ready
          .flatMap(({ phases }) => phases.find((phase) => phase.name === name)?.durationUs ?? [])
          .toSorted((a, b) => a - b),
      ),
    ),
    pairCount: differences.length,
    difference: index === reference ? null : pairedDifference(differences, comparedCount),
    failsMore: (shareDifference(before, after, { comparedCount })?.low ?? 0) > 0,
  }
}

function partOf(trials: EndedTrial[], cell: number) {
  const counted = trials.filter((trial) => trial.cell === cell && trial.state !== 'dropped')
  return { count: counted.filter(({ state }) => state === 'failed').length, of: counted.length }
}

/** A cold boot shows what settings do for it, and they can be applied; that it was cold cannot. */
function bestOf(cells: Cell[], judged: JudgedCell[]): number | null {
  const better = judged
    .map((cell, index) => ({ ...cell, index, high: cell.difference?.high ?? 0 }))
    .filter(({ high, failsMore, index }) => high < 0 && !failsMore && settingsOf(cells[index] ?? []).length > 0)
    .toSorted((a, b) => a.high - b.high)
  return better[0]?.index ?? null
}

/** The part of a cell that can be applied. */
export function settingsOf(cell: Cell): Cell {
  const condition = conditionOf(cell)
  return cell.filter((text) => !condition.includes(text))
}
