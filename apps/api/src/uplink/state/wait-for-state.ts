import { once } from 'node:events'
import { inOrganization } from '@bootfarm/db'
import type { StateEnvelope } from '@bootfarm/proto/uplink'
import { type Notifications, topicText } from '../../context/notifications.ts'
import type { AuthenticatedEdge, DbOrTransaction, PlatformContext } from '../../context/service-context.ts'
import { currentState } from './current-state.ts'
import type { GivenStates } from './given-states.ts'
import { isLater, type StatePair } from './site-facts.ts'

/** Applies only if nothing was heard of the site since the last look: a change by time alone may wait so long. */
const lookPutOffMs = 2_000

interface WaitOptions {
  notifications: Notifications
  given: GivenStates
  after: StatePair
  waitMs: number
  /** Aborts when the edge disconnects. */
  signal: AbortSignal
  /** Called once for each state with the time from its signing until the edge had it. */
  onAcknowledged: (afterMs: number) => void
}

/**
 * Returns the first desired state later than `after`, at once or within `waitMs`; otherwise null. A notification of the
 * site wakes it. Each look is a separate transaction: none is held while it waits. A change by time alone (a power-on
 * that expires) is seen by the next request.
 */
export async function waitForState(
  { db, clock }: PlatformContext,
  edge: AuthenticatedEdge,
  { notifications, given, after, waitMs, signal, onAcknowledged }: WaitOptions,
): Promise<StateEnvelope | null> {
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(waitMs)])
  const askedAt = clock()
  const waker = new EventTarget()
  let isWoken = false
  // Subscribe before the first look, so that no change is missed in between.
  const unsubscribe = notifications.subscribe(topicText({ state: { siteId: edge.siteId } }), () => {
    isWoken = true
    waker.dispatchEvent(new Event('wake'))
  })
  try {
    // A state given to hundreds of edges at once is recorded, and read again when all of them have it.
    if (waitMs > lookPutOffMs && given.isUnchanged(edge, after))
      await once(waker, 'wake', {
        signal: AbortSignal.any([deadline, AbortSignal.timeout(lookPutOffMs)]),
      }).catch(() => undefined)
    const takenMs = await inOrganization(db, edge.organizationId, (transaction) =>
      acknowledgeState(transaction, edge, { pair: after, now: askedAt }),
    )
    if (takenMs !== null) onAcknowledged(takenMs)
    for (let isExpected = isWoken; ; isExpected = true) {
      isWoken = false
      const state = await inOrganization(db, edge.organizationId, (transaction) =>
        currentState({ db: transaction, clock }, edge, isExpected),
      )
      if (isLater(state.pair, after)) {
        if (!isWoken) given.watch(edge, state.pair)
        return state.envelope
      }
      if (deadline.aborted) return null
      if (!isWoken) await once(waker, 'wake', { signal: deadline }).catch(() => undefined)
      if (deadline.aborted) return null
    }
  } finally {
    unsubscribe()
  }
}

/**
 * Records that an edge has the state after which it asks.
 * @returns ms since that state was signed; null if that is already recorded, or the pair is not the last one
 */
async function acknowledgeState(
  db: DbOrTransaction,
  { organizationId, edgeId }: AuthenticatedEdge,
  { pair: { incarnation, counter }, now }: { pair: StatePair; now: Date },
): Promise<number | null> {
  const rows = await db.$queryRaw<{ issued_at: Date }[]>`
    update desired_state set acknowledged_at = ${now}
    where organization_id = ${organizationId}::uuid and edge_id = ${edgeId}::uuid and incarnation = ${incarnation}::bigint
      and counter = ${counter}::bigint and acknowledged_at is null returning issued_at`
  const [row] = rows
  return row ? now.getTime() - row.issued_at.getTime() : null
}
