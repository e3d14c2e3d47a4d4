import { type Notifications, topicText } from '../../context/notifications.ts'
import type { AuthenticatedEdge } from '../../context/service-context.ts'
import type { StatePair } from './site-facts.ts'

/** An edge writes its state and asks again at once. */
const watchedMs = 10_000

interface Given {
  pair: StatePair
  unsubscribe: () => void
  timer: NodeJS.Timeout
}

/**
 * Remembers states that this process has just given to edges, until a notification reports a change. The edge's next
 * request then need not read the whole state again: after a change of hundreds of sites, that would delay edges that do
 * not have their state yet. This is only a shortcut: a request to another process, or a later one, reads the state.
 */
export class GivenStates {
  readonly #notifications: Notifications
  readonly #byEdge = new Map<string, Given>()

  constructor(notifications: Notifications) {
    this.#notifications = notifications
  }

  /** The caller must have listened to the edge's site since before it read the state, without a notification. */
  watch({ edgeId, siteId }: AuthenticatedEdge, pair: StatePair): void {
    this.#forget(edgeId)
    const forget = () => this.#forget(edgeId)
    this.#byEdge.set(edgeId, {
      pair,
      unsubscribe: this.#notifications.subscribe(topicText({ state: { siteId } }), forget),
      timer: setTimeout(forget, watchedMs).unref(),
    })
  }

  /** Returns, once, whether this is the state that the edge was given and no notification of its site came since. */
  isUnchanged({ edgeId }: AuthenticatedEdge, { incarnation, counter }: StatePair): boolean {
    const given = this.#byEdge.get(edgeId)
    this.#forget(edgeId)
    return given?.pair.incarnation === incarnation && given.pair.counter === counter
  }

  #forget(edgeId: string): void {
    const given = this.#byEdge.get(edgeId)
    if (!given) return
    this.#byEdge.delete(edgeId)
    clearTimeout(given.timer)
    given.unsubscribe()
  }
}
