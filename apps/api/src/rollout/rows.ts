import type { Prisma } from '@bootfarm/db'
import { heartbeatOf } from '../edge/public.ts'
import type { EdgeFacts } from './observe-edge.ts'
import { type RolloutEdgeState, type RolloutSummary, rolloutEdgeStates } from './schema.ts'

export const rolloutSummarySelect = {
  id: true,
  farmId: true,
  version: true,
  state: true,
  wave: true,
  waveCount: true,
  byHand: true,
  healthyMinutes: true,
  pauseReason: true,
  pausedEdgeId: true,
  pausedAt: true,
  createdByName: true,
  createdAt: true,
  endedAt: true,
  revision: true,
  farm: { select: { name: true } },
} satisfies Prisma.RolloutSelect
export type RolloutRow = Prisma.RolloutGetPayload<{ select: typeof rolloutSummarySelect }>

/** What `observeEdge` wants to know, and what an order changes. */
export const edgeFactsSelect = {
  id: true,
  name: true,
  siteId: true,
  agentVersion: true,
  revokedAt: true,
  wantedRelease: true,
  releaseAttempt: true,
  heartbeatAt: true,
  heartbeat: true,
} satisfies Prisma.EdgeSelect

export function edgeFactsOf(row: Omit<EdgeFacts, 'heartbeat'> & { heartbeat: unknown }): EdgeFacts {
  return { ...row, heartbeat: heartbeatOf(row) }
}

export function countsOf(states: { state: RolloutEdgeState; count: number }[]): RolloutSummary['counts'] {
  const counted = (wanted: RolloutEdgeState) =>
    states.filter(({ state }) => state === wanted).reduce((sum, { count }) => sum + count, 0)
  return Object.fromEntries(rolloutEdgeStates.map((state) => [state, counted(state)])) as RolloutSummary['counts']
}

export function rolloutSummaryOf(
  row: RolloutRow,
  { counts, edgeName }: { counts: RolloutSummary['counts']; edgeName: string | null },
): RolloutSummary {
  const { pauseReason, pausedAt, pausedEdgeId } = row
  return {
    id: row.id,
    farmId: row.farmId,
    farmName: row.farm.name,
    version: row.version,
    state: row.state,
    wave: row.wave,
    waveCount: row.waveCount,
    byHand: row.byHand,
    healthyMinutes: row.healthyMinutes,
    pause:
      pauseReason && pausedAt
        ? {
            reason: pauseReason,
            at: pausedAt.toISOString(),
            edge: pausedEdgeId && edgeName !== null ? { id: pausedEdgeId, name: edgeName } : null,
          }
        : null,
    counts,
    createdByName: row.createdByName,
    createdAt: row.createdAt.toISOString(),
    endedAt: row.endedAt?.toISOString() ?? null,
    revision: row.revision,
  }
}
