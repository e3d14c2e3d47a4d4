import { once } from 'node:events'
import { inOrganization } from '@bootfarm/db'
import { visibleBoots, visibleEdges } from '../access/visible.ts'
import { type Notifications, topicText } from '../context/notifications.ts'
import type { PlatformContext, ServiceContext } from '../context/service-context.ts'
import type { Actor } from '../rules/actor.ts'
import { readBootsById } from './read-boots.ts'
import { bootSummaryOf } from './rows.ts'
import type { BootChange } from './schema.ts'

const changesPerReadMax = 100

export interface WatchContext extends PlatformContext {
  actor: Actor
}

type ReadContext = Pick<ServiceContext, 'db' | 'clock' | 'actor'>

export interface WatchOptions {
  notifications: Notifications
  signal: AbortSignal
  /** The last change that the caller has; null to begin now. */
  after: bigint | null
}

/**
 * Yields the organization's boots when they change, and changes of its discovered devices, until `signal` aborts. Each
 * event has the number after which to continue. A boot that changed several times since `after` comes once, in its
 * newest state.
 */
export async function* watchBoots(
  { db, clock, actor }: WatchContext,
  { notifications, signal, after }: WatchOptions,
): AsyncGenerator<{ id: string; event: BootChange }> {
  const { organizationId } = actor
  // No transaction is held between two reads.
  const read = <T>(work: (context: ReadContext) => Promise<T>) =>
    inOrganization(db, organizationId, (transaction) => work({ db: transaction, clock, actor }))
  const waker = new EventTarget()
  const pending = { boots: false, discovered: false }
  const wakeFor = (topic: keyof typeof pending) => () => {
    pending[topic] = true
    waker.dispatchEvent(new Event('wake'))
  }
  // Listening begins before the first read, so that no change falls between.
  const unsubscribe = [
    notifications.subscribe(topicText({ boots: { organizationId } }), wakeFor('boots')),
    notifications.subscribe(topicText({ discovered: { organizationId } }), wakeFor('discovered')),
  ]
  try {
    const newest = await read(newestChange)
    // A number from before the database was restored may be higher than any there is.
    let last = after === null || after > newest ? newest : after
    yield { id: String(last), event: { kind: 'synced' } }
    while (!signal.aborted) {
      if (pending.discovered) {
        pending.discovered = false
        yield { id: String(last), event: { kind: 'discovered' } }
      }
      pending.boots = false
      const changes = await read((context) => readChanges(context, last))
      for (const { change, event } of changes) {
        last = change
        yield { id: String(last), event }
      }
      const isBehind = changes.length === changesPerReadMax || pending.boots || pending.discovered
      if (!isBehind) await once(waker, 'wake', { signal })
    }
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    for (const end of unsubscribe) end()
  }
}

/** The first ones after `last`, in their order. */
async function readChanges(context: ReadContext, last: bigint): Promise<{ change: bigint; event: BootChange }[]> {
  const { db, clock, actor } = context
  const range = {
    where: { organizationId: actor.organizationId, change: { gt: last } },
    orderBy: { change: 'asc' as const },
    take: changesPerReadMax,
    select: { bootId: true, change: true },
  }
  const changed = await db.bootKey.findMany(range)
  const withdrawn = await db.withdrawnBoot.findMany({
    ...range,
    where: { ...range.where, edge: visibleEdges(actor) },
  })
  const boots = await readBootsById(
    context,
    changed.map(({ bootId }) => bootId),
    await visibleBoots(context),
  )
  const now = clock()
  const changes = [
    ...changed.flatMap(({ bootId, change }) => {
      const boot = boots.get(bootId)
      return boot ? [{ change, event: { kind: 'boot' as const, boot: bootSummaryOf(boot, now) } }] : []
    }),
    ...withdrawn.map(({ bootId, change }) => ({ change, event: { kind: 'withdrawn' as const, bootId } })),
  ]
  return changes.sort((a, b) => (a.change < b.change ? -1 : 1)).slice(0, changesPerReadMax)
}

async function newestChange({ db, actor }: ReadContext): Promise<bigint> {
  const feed = await db.bootFeed.findUnique({
    where: { organizationId: actor.organizationId },
    select: { lastChange: true },
  })
  return feed?.lastChange ?? 0n
}
