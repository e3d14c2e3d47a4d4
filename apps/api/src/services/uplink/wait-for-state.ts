import { once } from 'node:events'
import { inOrganization } from '@bootfarm/db'
import type { StateEnvelope } from '@bootfarm/proto/uplink'
import { isLater, type StatePair } from '../../domain/state-pair.ts'
import { type Notifications, topicText } from '../notifications.ts'
import type { PlatformContext } from '../service-context.ts'
import { acknowledgeState } from './acknowledge-state.ts'
import type { AuthenticatedEdge } from './authenticate-edge.ts'
import { currentState } from './current-state.ts'

interface WaitOptions {
  notifications: Notifications
  after: StatePair
  waitMs: number
  /** Aborts when the edge is gone. */
  signal: AbortSignal
  /** Hears how long after its signing `after` was taken, once for each state. */
  onAcknowledged: (afterMs: number) => void
}

/**
 * The first desired state later than `after`, at once or within `waitMs`; else null. A notification of the site wakes it.
 * Each look is a transaction of its own: none is held while it waits. What only time changes (a power-on that expires) is seen by the next request.
 */
export async function waitForState(
  { db, clock }: PlatformContext,
  edge: AuthenticatedEdge,
  { notifications, after, waitMs, signal, onAcknowledged }: WaitOptions,
): Promise<StateEnvelope | null> {
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(waitMs)])
  const waker = new EventTarget()
  let isWoken = false
  // Listening begins before the first look, so that no change falls between.
  const unsubscribe = notifications.subscribe(topicText({ state: { siteId: edge.siteId } }), () => {
    isWoken = true
    waker.dispatchEvent(new Event('wake'))
  })
  try {
    const takenMs = await inOrganization(db, edge.organizationId, (transaction) =>
      acknowledgeState({ db: transaction, clock }, edge, after),
    )
    if (takenMs !== null) onAcknowledged(takenMs)
    for (;;) {
      isWoken = false
      const state = await inOrganization(db, edge.organizationId, (transaction) =>
        currentState({ db: transaction, clock }, edge),
      )
      if (isLater(state.pair, after)) return state.envelope
      if (deadline.aborted) return null
      if (!isWoken) await once(waker, 'wake', { signal: deadline }).catch(() => undefined)
      if (deadline.aborted) return null
    }
  } finally {
    unsubscribe()
  }
}
