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
 * States that this process has just given to edges, for as long as nobody has said that they changed. The edge's next
 * request need not read all of the state again at once to find that: where a change concerns hundreds of sites, that
 * would hold up those that have not got theirs. Only a short cut: a request that comes to another process, or later,
 * looks for itself.
 */
export class GivenStates {
  readonly #notifications: Notifications
  readonly #byEdge = new Map<string, Given>()

  constructor(notifications: Notifications) {
    this.#notifications = notifications
  }

  /** The caller has listened to the edge's site since before it read the state, and has heard nothing. */
  watch({ edgeId, siteId }: AuthenticatedEdge, pair: StatePair): void {
    this.#forget(edgeId)
    const forget = () => this.#forget(edgeId)
    this.#byEdge.set(edgeId, {
      pair,
      unsubscribe: this.#notifications.subscribe(topicText({ state: { siteId } }), forget),
      timer: setTimeout(forget, watchedMs).unref(),
    })
  }

  /** Once: whether this is the state that the edge was given, and nothing was heard of its site since. */
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
