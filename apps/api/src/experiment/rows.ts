import type { Prisma } from '@bootfarm/db'
import { bootPhases } from '@bootfarm/proto/boot-phases'
import { type EndedTrial, judgeCells } from './judge-cells.ts'
import { recommend } from './recommend.ts'
import {
  cellsOfJson,
  type ExperimentDetail,
  type ExperimentSummary,
  factorsOfJson,
  type TrialStateName,
  trialStates,
} from './schema.ts'
import { cellTitle } from './setting-text.ts'

export const experimentSelect = {
  id: true,
  name: true,
  siteId: true,
  state: true,
  reason: true,
  factors: true,
  cells: true,
  repetitions: true,
  atOnce: true,
  bootSeconds: true,
  createdByName: true,
  createdAt: true,
  endsAt: true,
  endedAt: true,
  appliedCell: true,
  appliedAt: true,
  appliedByName: true,
  revision: true,
  site: { select: { name: true, farmId: true } },
} satisfies Prisma.ExperimentSelect
export type ExperimentRow = Prisma.ExperimentGetPayload<{ select: typeof experimentSelect }>

export interface TrialCount {
  state: TrialStateName
  count: number
}

export function experimentSummaryOf(
  row: ExperimentRow,
  { counts, deviceCount }: { counts: TrialCount[]; deviceCount: number },
): ExperimentSummary {
  const countOf = (wanted: TrialStateName) =>
    counts.filter(({ state }) => state === wanted).reduce((sum, { count }) => sum + count, 0)
  return {
    id: row.id,
    name: row.name,
    farmId: row.site.farmId,
    siteId: row.siteId,
    siteName: row.site.name,
    state: row.state,
    reason: row.reason,
    factors: factorsOfJson(row.factors),
    cellCount: cellsOfJson(row.cells).length,
    deviceCount,
    repetitions: row.repetitions,
    counts: Object.fromEntries(trialStates.map((state) => [state, countOf(state)])) as ExperimentSummary['counts'],
    createdByName: row.createdByName,
    createdAt: row.createdAt.toISOString(),
    endsAt: row.endsAt.toISOString(),
    endedAt: row.endedAt?.toISOString() ?? null,
    revision: row.revision,
  }
}

export interface TrialRow {
  cell: number
  deviceId: string
  repetition: number
  state: TrialStateName
  durationUs: bigint | null
  phases: unknown
}

type Judged = Pick<ExperimentDetail, 'cells' | 'pairsNeeded' | 'recommendation' | 'applied' | 'atOnce' | 'bootSeconds'>

/** The results of an experiment, and what they recommend. */
export function judgedOf(row: ExperimentRow, trials: TrialRow[]): Judged {
  const cells = cellsOfJson(row.cells)
  const judgement = judgeCells(cells, trials.flatMap(endedOf))
  const { appliedCell: cell, appliedAt, appliedByName } = row
  return {
    cells: judgement.cells.map(({ difference, phasesUs, ...judged }, index) => ({
      ...judged,
      settings: cells[index] ?? [],
      title: cellTitle(cells[index] ?? []),
      phasesUs: Object.fromEntries(
        bootPhases.flatMap((name, phase) => {
          const us = phasesUs[phase] ?? null
          return us === null ? [] : [[name, us] as const]
        }),
      ),
      difference: difference && {
        us: Math.round(difference.difference),
        lowUs: Math.round(difference.low),
        highUs: Math.round(difference.high),
        isClear: difference.isClear,
        chance: difference.chance,
      },
    })),
    pairsNeeded: judgement.pairsNeeded,
    recommendation: recommend(cells, judgement, { isOver: row.endedAt !== null }),
    applied:
      cell !== null && appliedAt && appliedByName !== null
        ? { cell, at: appliedAt.toISOString(), byName: appliedByName }
        : null,
    atOnce: row.atOnce,
    bootSeconds: row.bootSeconds,
  }
}

function endedOf({ state, durationUs, phases, ...trial }: TrialRow): EndedTrial[] {
  if (state !== 'ready' && state !== 'failed' && state !== 'dropped') return []
  return [
    {
      ...trial,
      state,
      durationUs: durationUs === null ? null : Number(durationUs),
      phases: (phases as EndedTrial['phases'] | null) ?? [],
    },
  ]
}
