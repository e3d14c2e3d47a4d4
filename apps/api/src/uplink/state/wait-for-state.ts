import { once } from 'node:events'
import { inOrganization, type TenantDb } from '@bootfarm/db'
import type { StateDeltaEnvelope, StateEnvelope } from '@bootfarm/proto/uplink'
import { type Notifications, topicText } from '../../context/notifications.ts'
import type { AuthenticatedEdge, DbOrTransaction, PlatformContext } from '../../context/service-context.ts'
import { lookAtState, renewState, type StateLook, storedState } from './current-state.ts'
import { isLater, type StatePair } from './site-facts.ts'
import { stateAnswer } from './state-answer.ts'
import { Turns } from './turns.ts'

interface WaitOptions {
  notifications: Notifications
  after: StatePair
  /** The digest of the payload that the edge has, if it takes a change of that. */
  base: string | undefined
  waitMs: number
  /** Of this process, for devices' screens; null: it cannot be printed. */
  dashboardUrl: string | null
  /** Aborts when the edge disconnects. */
  signal: AbortSignal
  /** In place of the first look; null: the edge is not as the caller says. */
  firstLook?: () => Promise<StateLook | null>
  /** Called once for each state with the time from its signing until the edge had it. */
  onAcknowledged: (afterMs: number) => void
}

/**
 * States that this process makes at once for one organization: a change of thousands of sites wakes thousands of edges,
 * which take turns, so that the organization's people are not behind all of them.
 */
const readingsMax = 2
const readings = new Turns(readingsMax)

/**
 * Returns the first desired state later than `after`, at once or within `waitMs`; otherwise null. A notification of the
 * site wakes it. Each look is a separate transaction: none is held while it waits. A change by time alone (a power-on
 * that expires) is seen by the next request.
 * @returns `not_known` if `firstLook` says so
 */
export async function waitForState(
  { db, clock }: PlatformContext,
  edge: AuthenticatedEdge,
  { notifications, after, base, waitMs, dashboardUrl, signal, firstLook, onAcknowledged }: WaitOptions,
): Promise<StateEnvelope | StateDeltaEnvelope | null | 'not_known'> {
  const { organizationId, siteId } = edge
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(waitMs)])
  const waker = new EventTarget()
  let isWoken = false
  // Subscribe before the first look, so that no change is missed in between.
  const unsubscribe = notifications.subscribe(topicText({ state: { siteId } }), () => {
    isWoken = true
    waker.dispatchEvent(new Event('wake'))
  })
  const within = <T>(work: (transaction: TenantDb) => Promise<T>) => inOrganization(db, organizationId, work)
  try {
    for (let isFirst = true; ; isFirst = false) {
      isWoken = false
      const look =
        isFirst && firstLook
          ? await firstLook()
          : await within((transaction) => lookAtState(transaction, edge, clock()))
      if (look === null) return 'not_known'
      const { pair, isAcknowledged, isCurrent } = look
      if (isFirst && !isAcknowledged && pair !== null) {
        const takenMs = await within((transaction) =>
          acknowledgeState(transaction, edge, { pair: after, now: clock() }),
        )
        if (takenMs !== null) onAcknowledged(takenMs)
      }
      const isLaterThere = pair !== null && isLater(pair, after)
      if (!isCurrent || isLaterThere) {
        const state = await readings.within(organizationId, signal, () =>
          within((transaction) =>
            isCurrent ? storedState(transaction, edge) : renewState(transaction, edge, { now: clock(), dashboardUrl }),
          ),
        )
        if (state === null) return null
        if (isLater(state.pair, after)) return stateAnswer(state, base)
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
