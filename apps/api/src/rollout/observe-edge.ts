import { edgeOnlineWithinMs, type Heartbeat } from '@bootfarm/proto/uplink'
import type { RolloutEdgeState } from './schema.ts'

/** An exchange of the program takes seconds, and a machine that restarts a minute or two. */
export const silentAfterMs = 180_000
/** Fetching, and waiting for downloads and write caches that end with the process, is over by then. */
export const lateAfterMs = 30 * 60_000

/** The edge's part in a rollout, as it was known before. */
export interface KnownEdge {
  state: RolloutEdgeState
  cause: string | null
  attempt: number | null
  orderedAt: Date | null
  healthySince: Date | null
}

export interface EdgeFacts {
  revokedAt: Date | null
  wantedRelease: string | null
  releaseAttempt: number
  agentVersion: string
  heartbeatAt: Date | null
  heartbeat: Heartbeat | null
}

export interface Observation {
  state: RolloutEdgeState
  cause: string | null
  healthySince: Date | null
}

interface Situation {
  version: string
  /** Since when the control plane has been watching: it hears nothing while it is down. */
  watchedSince: Date
  now: Date
}

/** States in which an edge holds up a rollout until a person decides. */
export const troubles = ['failed', 'silent', 'late'] as const
export type Trouble = (typeof troubles)[number]

export function isTrouble(state: RolloutEdgeState): state is Trouble {
  return (troubles as readonly string[]).includes(state)
}

/**
 * Decides what has become of an edge since its order, by its last heartbeat.
 * @param edge null for an edge that the farm no longer has
 */
export function observeEdge(
  known: KnownEdge,
  edge: EdgeFacts | null,
  { version, watchedSince, now }: Situation,
): Observation {
  if (known.state === 'left') return { state: 'left', cause: known.cause, healthySince: null }
  if (!edge) return leftFor('deleted')
  if (edge.revokedAt) return leftFor('revoked')
  const { orderedAt } = known
  if (known.state === 'waiting' || !orderedAt) return { state: 'waiting', cause: null, healthySince: null }
  if (edge.wantedRelease !== version || edge.releaseAttempt !== known.attempt) return leftFor('other_order')

  const told = edge.heartbeat?.update
  const update = told?.version === version && told.attempt === known.attempt ? told : null
  const waitedSince = Math.max(orderedAt.getTime(), watchedSince.getTime())
  const heardAt = Math.max(edge.heartbeatAt?.getTime() ?? 0, waitedSince)
  if (now.getTime() - heardAt > silentAfterMs) return { state: 'silent', cause: null, healthySince: null }
  if (update?.state === 'failed') return { state: 'failed', cause: update.cause ?? null, healthySince: null }
  const runsIt = edge.agentVersion === version
  if (runsIt && update?.state === 'healthy') {
    const isOnline = now.getTime() - (edge.heartbeatAt?.getTime() ?? 0) < edgeOnlineWithinMs
    return { state: 'running', cause: null, healthySince: isOnline ? (known.healthySince ?? now) : null }
  }
  // It ran the release, and another program now, without saying that the release failed.
  if (known.state === 'running' && !runsIt) return { state: 'failed', cause: 'returned', healthySince: null }
  if (now.getTime() - waitedSince > lateAfterMs)
    return { state: 'late', cause: update?.cause ?? null, healthySince: null }
  return { state: 'ordered', cause: update?.cause ?? null, healthySince: null }
}

function leftFor(cause: string): Observation {
  return { state: 'left', cause, healthySince: null }
}

/**
 * Returns when the edges of a wave have been healthy for so many minutes; null while one of them is not. A wave
 * without edges that count is over when it starts.
 */
export function waveHealthyAt(edges: Observation[], startedAt: Date, healthyMinutes: number): Date | null {
  let since = startedAt.getTime()
  for (const { state, healthySince } of edges) {
    if (state === 'left') continue
    if (state !== 'running' || !healthySince) return null
    since = Math.max(since, healthySince.getTime())
  }
  return new Date(since + healthyMinutes * 60_000)
}
