import { once } from 'node:events'
import { inOrganization } from '@bootfarm/db'
import { visibleBoots, visibleEdges } from '../access/visible.ts'
import { type Notifications, topicText } from '../context/notifications.ts'
import type { PlatformContext, ServiceContext } from '../context/service-context.ts'
import type { Actor } from '../rules/actor.ts'
import { getBoot } from './get-boot.ts'
import { readBootsById, readPlainBoots } from './read-boots.ts'
import { bootSummaryOf } from './rows.ts'
import type { BootChange } from './schema.ts'

const changesPerReadMax = 100

interface WatchContext extends PlatformContext {
  actor: Actor
}

type ReadContext = Pick<ServiceContext, 'db' | 'clock' | 'actor'>

interface WatchOptions {
  notifications: Notifications
  signal: AbortSignal
  /** The last change that the caller has; null to begin now. */
  after: bigint | null
  /** The boot of an open page. */
  open: { bootId: string; detailKeptDays: number } | null
}

/**
 * Yields the organization's boots when they change, and changes of its discovered devices, until `signal` aborts. Each
 * event has the number after which to continue. A boot that changed several times since `after` comes once, in its
 * newest state. The boot of an open page also comes whole, so that a page needs one connection and no further request.
 */
export async function* watchBoots(
  { db, clock, actor }: WatchContext,
  { notifications, signal, after, open }: WatchOptions,
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
    const opened = open && (await read((context) => detailChange(context, open)))
    // A number from before the database was restored may be higher than any there is.
    let last = after === null || after > newest ? newest : after
    yield { id: String(last), event: { kind: 'synced' } }
    if (opened) yield { id: String(last), event: opened }
    while (!signal.aborted) {
      if (pending.discovered) {
        pending.discovered = false
        yield { id: String(last), event: { kind: 'discovered' } }
      }
      pending.boots = false
      const changes = await read((context) => readChanges(context, { last, open }))
      for (const { change, event } of changes) {
        last = change
        yield { id: String(last), event }
      }
      const isBehind = changes.length >= changesPerReadMax || pending.boots || pending.discovered
      if (!isBehind) await once(waker, 'wake', { signal })
    }
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    for (const end of unsubscribe) end()
  }
}

type OpenBoot = NonNullable<WatchOptions['open']>

/** Returns the first changes after `last`, in their order. */
async function readChanges(
  context: ReadContext,
  { last, open }: { last: bigint; open: OpenBoot | null },
): Promise<{ change: bigint; event: BootChange }[]> {
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
  const first = changes.sort((a, b) => (a.change < b.change ? -1 : 1)).slice(0, changesPerReadMax)
  const openChange = first.find(({ event }) => event.kind === 'boot' && event.boot.id === open?.bootId)?.change
  if (!open || openChange === undefined) return first
  const detail = { change: openChange, event: await detailChange(context, open) }
  return first.flatMap((one) => (one.change === openChange ? [one, detail] : [one]))
}

/** A boot that the actor may not see is answered like one that does not exist. */
async function detailChange(context: ReadContext, open: OpenBoot): Promise<BootChange> {
  const visible = await readPlainBoots(context, [open.bootId], await visibleBoots(context))
  if (visible.length === 0) return { kind: 'withdrawn', bootId: open.bootId }
  return { kind: 'detail', boot: await getBoot(context, open) }
}

async function newestChange({ db, actor }: ReadContext): Promise<bigint> {
  const feed = await db.bootFeed.findUnique({
    where: { organizationId: actor.organizationId },
    select: { lastChange: true },
  })
  return feed?.lastChange ?? 0n
}
