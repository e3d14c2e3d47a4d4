import { once } from 'node:events'
import type { BootChange } from '../../domain/boot-view.ts'
import { type Notifications, topicText } from '../notifications.ts'
import type { ServiceContext } from '../service-context.ts'
import { bootSummaryOf, bootSummarySelect } from './boot-rows.ts'

const changesPerReadMax = 100

interface WatchOptions {
  notifications: Notifications
  signal: AbortSignal
  /** The last change that the caller has; null to begin now. */
  after: bigint | null
}

/**
 * The organization's boots as they change, until `signal` aborts. Each event carries the number to go on after.
 * A boot that changed several times since `after` comes once, in its newest state.
 */
export async function* watchBoots(
  context: ServiceContext,
  { notifications, signal, after }: WatchOptions,
): AsyncGenerator<{ id: string; event: BootChange }> {
  const { organizationId } = context.actor
  const waker = new EventTarget()
  let pending = false
  // Listening begins before the first read, so that no change falls between.
  const unsubscribe = notifications.subscribe(topicText({ boots: { organizationId } }), () => {
    pending = true
    waker.dispatchEvent(new Event('wake'))
  })
  try {
    const newest = await newestChange(context)
    // A number from before the database was restored may be higher than any there is.
    let last = after === null || after > newest ? newest : after
    yield { id: String(last), event: { kind: 'synced' } }
    while (!signal.aborted) {
      pending = false
      const rows = await context.db.boot.findMany({
        where: { organizationId, change: { gt: last } },
        orderBy: { change: 'asc' },
        take: changesPerReadMax,
        select: bootSummarySelect,
      })
      for (const row of rows) {
        last = row.change
        yield { id: String(last), event: { kind: 'boot', boot: bootSummaryOf(row, context.clock()) } }
      }
      if (rows.length < changesPerReadMax && !pending) await once(waker, 'wake', { signal })
    }
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    unsubscribe()
  }
}

async function newestChange({ db, actor }: ServiceContext): Promise<bigint> {
  const feed = await db.bootFeed.findUnique({
    where: { organizationId: actor.organizationId },
    select: { lastChange: true },
  })
  return feed?.lastChange ?? 0n
}
