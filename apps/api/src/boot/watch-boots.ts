import { inOrganization } from '@bootfarm/db'
import { visibleBoots } from '../access/visible.ts'
import type { PlatformContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { type Actor, may } from '../rules/actor.ts'
import { type BootFeeds, type FeedBatch, newestChange, type OpenBoot, type Watcher } from './boot-feed.ts'
import { getBoot } from './get-boot.ts'
import { readPlainBoots } from './read-boots.ts'
import type { BootChange } from './schema.ts'

interface WatchOptions {
  feeds: BootFeeds
  signal: AbortSignal
  /** The last change that the caller has; null to begin now. */
  after: bigint | null
}

interface NumberedChange {
  id: string
  event: BootChange
}

/**
 * Yields the organization's boots when they change, and changes of its discovered devices, until `signal` aborts. Each
 * event has the number after which to continue. A boot that changed several times since `after` comes once, in its
 * newest state. The boot of an open page also comes whole, so that a page needs one connection and no further request.
 * Throws `unauthenticated` at the first change after the watcher's session, key or role has ended, and `rate_limited`
 * for a caller with too many open pages.
 */
export async function* watchBoots(
  context: PlatformContext,
  watcher: Watcher,
  { feeds, signal, after }: WatchOptions,
): AsyncGenerator<NumberedChange> {
  const { open } = watcher
  const subscription = feeds.open(watcher)
  const end = () => subscription.close()
  signal.addEventListener('abort', end)
  try {
    await subscription.ready()
    const { newest, opened } = await begin(context, watcher)
    // A number from before the database was restored may be higher than any there is.
    let last = after === null || after > newest ? newest : after
    if (last < newest) subscription.isBehind = true
    yield { id: String(last), event: { kind: 'synced' } }
    if (opened) yield { id: String(last), event: opened }
    let { actor } = watcher
    while (!signal.aborted) {
      const pushed = await subscription.next()
      if (signal.aborted) return
      const batch = pushed ?? (await subscription.readAfter(last))
      // A page that was opened after the read began has just been looked up.
      const now = batch.actors.get(watcher)
      if (now === null) throw new AppError('unauthenticated')
      actor = now ?? actor
      if (batch.isDiscovered) yield { id: String(last), event: { kind: 'discovered' } }
      for (const { change, event } of visibleOf(batch, { actor, after: last, open })) {
        last = change
        yield { id: String(last), event }
      }
      if (batch.through > last) last = batch.through
      if (pushed === null && batch.isFull) subscription.isBehind = true
    }
  } finally {
    signal.removeEventListener('abort', end)
    end()
  }
}

/** The actor's part of a batch, with the whole boot of the open page after its change. */
function* visibleOf(
  { changes, details }: FeedBatch,
  { actor, after, open }: { actor: Actor; after: bigint; open: OpenBoot | null },
): Generator<{ change: bigint; event: BootChange }> {
  for (const { change, event, permission, place } of changes) {
    if (change <= after || !may(actor, permission, place)) continue
    yield { change, event }
    const detail = event.kind === 'boot' && event.boot.id === open?.bootId ? details.get(open.bootId) : undefined
    if (detail) yield { change, event: { kind: 'detail', boot: detail } }
  }
}

function begin(
  { db, clock }: PlatformContext,
  { actor, open }: Watcher,
): Promise<{ newest: bigint; opened: BootChange | null }> {
  return inOrganization(db, actor.organizationId, async (transaction) => {
    const newest = await newestChange(transaction, actor.organizationId)
    if (!open) return { newest, opened: null }
    const context = { db: transaction, clock, actor }
    // A boot that the actor may not see is answered like one that does not exist.
    const visible = await readPlainBoots(context, [open.bootId], await visibleBoots(context))
    if (visible.length === 0) return { newest, opened: { kind: 'withdrawn', bootId: open.bootId } }
    return { newest, opened: { kind: 'detail', boot: await getBoot(context, open) } }
  })
}
