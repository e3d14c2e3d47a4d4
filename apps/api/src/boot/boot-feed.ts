import { setTimeout as delay } from 'node:timers/promises'
import { type Db, inOrganization } from '@bootfarm/db'
import { findPlaces } from '../access/find-place.ts'
import { ofLiveSite } from '../access/visible.ts'
import { type Notifications, topicText } from '../context/notifications.ts'
import type { DbOrTransaction, PlatformContext, SystemContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import type { Actor } from '../rules/actor.ts'
import type { Permission } from '../rules/permissions.ts'
import type { Place } from '../rules/place.ts'
import { getBoot } from './get-boot.ts'
import { readBootsById } from './read-boots.ts'
import { bootSummaryOf } from './rows.ts'
import type { BootChange, BootDetail } from './schema.ts'

const changesPerReadMax = 100
/** Batches that wait for a reader who is slower than the boots. Beyond them it reads what it missed by itself. */
const batchesWaitingMax = 50
/** While boots change without a pause, they are read this often: what a read costs does not grow with the boots. */
const readEveryMs = 250
/**
 * A process that is killed after a commit has not told the others of it: they look by themselves this often. Nobody is
 * told again of discovered devices, which have no number: pages read those when they connect again, within 10 minutes.
 */
const lookEveryMsDefault = 30_000
/** Live pages of one person, or one API key, in one process. */
export const subscriptionsPerCallerMax = 10

/** The boot of an open page. */
export interface OpenBoot {
  bootId: string
  detailKeptDays: number
}

/** Whoever watches an organization's boots. */
export interface Watcher {
  actor: Actor
  /** Null for an API key. */
  sessionId: string | null
  open: OpenBoot | null
}

/** One change, for those who have the permission at its place. */
export interface FeedChange {
  change: bigint
  event: Extract<BootChange, { kind: 'boot' | 'withdrawn' }>
  permission: Permission
  place: Place
}

export interface FeedBatch {
  /** In their order. */
  changes: FeedChange[]
  /** The last change that the read covered. */
  through: bigint
  /** There are further ones. */
  isFull: boolean
  isDiscovered: boolean
  /** The watchers as they are now: null for one whose session, key or role has ended. */
  actors: Map<Watcher, Actor | null>
  /** Boots of open pages, whole. */
  details: Map<string, BootDetail>
}

/** Looks them up in their organization's transaction, in the same order; null for those whose right has ended. */
export type FindActors = (db: DbOrTransaction, watchers: Watcher[]) => Promise<(Actor | null)[]>

interface FeedOptions extends PlatformContext {
  db: Db
  notifications: Notifications
  findActors: FindActors
  /** Tests alone give others. */
  pause?: (ms: number) => Promise<unknown>
  lookEveryMs?: number
}

/**
 * The changes of boots for all open pages of this process: one read per organization and wake, however many pages are
 * open. Each page filters what it may see in memory, with the rights that the same read found.
 */
export class BootFeeds {
  readonly #options: FeedOptions
  readonly #feeds = new Map<string, OrganizationFeed>()
  readonly #counts = new Map<string, number>()

  constructor(options: FeedOptions) {
    this.#options = options
  }

  /** Throws `rate_limited` for a caller with too many subscriptions. The caller closes it. */
  open(watcher: Watcher): FeedSubscription {
    const { organizationId, apiKeyId, userId } = watcher.actor
    const caller = apiKeyId ?? userId ?? ''
    const count = this.#counts.get(caller) ?? 0
    if (count >= subscriptionsPerCallerMax)
      throw new AppError('rate_limited', {
        public: `${subscriptionsPerCallerMax} pages with live updates are open already. Close one first.`,
      })
    this.#counts.set(caller, count + 1)
    const feed = this.#feeds.get(organizationId) ?? new OrganizationFeed(this.#options, organizationId)
    this.#feeds.set(organizationId, feed)
    const subscription = new FeedSubscription(watcher, feed, () => {
      const left = (this.#counts.get(caller) ?? 1) - 1
      if (left === 0) this.#counts.delete(caller)
      else this.#counts.set(caller, left)
      if (feed.remove(subscription) && this.#feeds.get(organizationId) === feed) this.#feeds.delete(organizationId)
    })
    feed.add(subscription)
    return subscription
  }
}

/** One open page. */
export class FeedSubscription {
  readonly watcher: Watcher
  readonly #feed: OrganizationFeed
  readonly #remove: () => void
  #batches: FeedBatch[] = []
  #error: unknown = null
  #isClosed = false
  /** What came after its last batch is to be read. */
  isBehind = false
  /** Batches were dropped: whether discovered devices changed is not known. */
  #hasDropped = false
  #waker = Promise.withResolvers<void>()

  constructor(watcher: Watcher, feed: OrganizationFeed, remove: () => void) {
    this.watcher = watcher
    this.#feed = feed
    this.#remove = remove
  }

  /** Resolves when every later change will be in a batch. */
  ready(): Promise<void> {
    return this.#feed.ready
  }

  push(batch: FeedBatch): void {
    if (this.#batches.length >= batchesWaitingMax) {
      this.#batches = []
      this.isBehind = true
      this.#hasDropped = true
    } else this.#batches.push(batch)
    this.#wake()
  }

  fail(error: unknown): void {
    this.#error = error
    this.#wake()
  }

  /** Returns the next batch, when there is one; null if it is to read by itself, or is closed. */
  async next(): Promise<FeedBatch | null> {
    for (;;) {
      if (this.#error) throw this.#error
      if (this.isBehind || this.#isClosed) return null
      const batch = this.#batches.shift()
      if (batch) return batch
      this.#waker = Promise.withResolvers<void>()
      await this.#waker.promise
    }
  }

  /** Reads what this page alone has missed. */
  readAfter(after: bigint): Promise<FeedBatch> {
    const isDiscovered = this.#hasDropped
    this.isBehind = false
    this.#hasDropped = false
    return this.#feed.read([this.watcher], after, isDiscovered)
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#remove()
    this.#wake()
  }

  #wake(): void {
    this.#waker.resolve()
  }
}

/** The reader of one organization's changes. */
class OrganizationFeed {
  readonly ready: Promise<void>
  readonly #options: FeedOptions
  readonly #organizationId: string
  readonly #subscriptions = new Set<FeedSubscription>()
  readonly #unsubscribe: (() => void)[]
  readonly #pending = { boots: false, discovered: false }
  #last = 0n
  #running: Promise<void> | undefined

  constructor(options: FeedOptions, organizationId: string) {
    this.#options = options
    this.#organizationId = organizationId
    const wakeFor = (topic: 'boots' | 'discovered') => () => {
      this.#pending[topic] = true
      this.#run()
    }
    // Listening begins before the first read, so that no change falls between.
    const looking = setInterval(wakeFor('boots'), options.lookEveryMs ?? lookEveryMsDefault).unref()
    this.#unsubscribe = [
      () => clearInterval(looking),
      options.notifications.subscribe(topicText({ boots: { organizationId } }), wakeFor('boots')),
      options.notifications.subscribe(topicText({ discovered: { organizationId } }), wakeFor('discovered')),
    ]
    this.ready = this.#inOrganization((context) => newestChange(context.db, organizationId)).then((newest) => {
      this.#last = newest
    })
    // Each page hears of it by its own `ready()`.
    this.ready.catch(() => undefined)
  }

  add(subscription: FeedSubscription): void {
    this.#subscriptions.add(subscription)
  }

  /** Returns whether nobody is left. */
  remove(subscription: FeedSubscription): boolean {
    this.#subscriptions.delete(subscription)
    if (this.#subscriptions.size > 0) return false
    for (const end of this.#unsubscribe) end()
    return true
  }

  #run(): void {
    this.#running ??= this.#readPending()
      .catch((error: unknown) => {
        // The pages connect again, and read what they have missed.
        for (const subscription of this.#subscriptions) subscription.fail(error)
      })
      .finally(() => {
        this.#running = undefined
      })
  }

  async #readPending(): Promise<void> {
    await this.ready
    while ((this.#pending.boots || this.#pending.discovered) && this.#subscriptions.size > 0) {
      const begin = performance.now()
      const isDiscovered = this.#pending.discovered
      Object.assign(this.#pending, { boots: false, discovered: false })
      const watchers = [...this.#subscriptions].map(({ watcher }) => watcher)
      const batch = await this.read(watchers, this.#last, isDiscovered)
      this.#last = batch.through
      if (batch.isFull) this.#pending.boots = true
      for (const subscription of this.#subscriptions) subscription.push(batch)
      // Changes that come meanwhile are read together.
      await this.#pause(readEveryMs - (performance.now() - begin))
    }
  }

  #pause(ms: number): Promise<unknown> {
    const { pause = (pauseMs: number) => delay(pauseMs, undefined, { ref: false }) } = this.#options
    return pause(Math.max(ms, 0))
  }

  /** Reads the first changes after `last`, and the rights of these watchers. */
  read(watchers: Watcher[], last: bigint, isDiscovered = false): Promise<FeedBatch> {
    return this.#inOrganization(async (context) => {
      const found = await readChanges(context, { organizationId: this.#organizationId, last })
      const changedIds = new Set(found.changes.map(({ event }) => (event.kind === 'boot' ? event.boot.id : '')))
      const actors = await this.#options.findActors(context.db, watchers)
      const details = new Map<string, BootDetail>()
      for (const { open } of watchers)
        if (open && changedIds.has(open.bootId) && !details.has(open.bootId))
          details.set(open.bootId, await getBoot({ ...context, actor: { organizationId: this.#organizationId } }, open))
      return {
        ...found,
        isDiscovered,
        details,
        actors: new Map(watchers.map((watcher, index) => [watcher, actors[index] ?? null])),
      }
    })
  }

  /** No transaction is held between two reads. */
  #inOrganization<T>(work: (context: SystemContext) => Promise<T>): Promise<T> {
    const { db, clock } = this.#options
    return inOrganization(db, this.#organizationId, (transaction) => work({ db: transaction, clock }))
  }
}

export async function newestChange(db: DbOrTransaction, organizationId: string): Promise<bigint> {
  const feed = await db.bootFeed.findUnique({ where: { organizationId }, select: { lastChange: true } })
  return feed?.lastChange ?? 0n
}

type Row = { change: bigint; bootId: string; edge?: { siteId: string; site: { farmId: string } } }

/** A boot that changed several times comes once, in its newest state. */
async function readChanges(
  { db, clock }: SystemContext,
  { organizationId, last }: { organizationId: string; last: bigint },
): Promise<Pick<FeedBatch, 'changes' | 'through' | 'isFull'>> {
  const range = {
    where: { organizationId, change: { gt: last } },
    orderBy: { change: 'asc' as const },
    take: changesPerReadMax,
  }
  const changed: Row[] = await db.bootKey.findMany({ ...range, select: { bootId: true, change: true } })
  const withdrawn: Row[] = await db.withdrawnBoot.findMany({
    ...range,
    where: { ...range.where, edge: ofLiveSite },
    select: { bootId: true, change: true, edge: { select: { siteId: true, site: { select: { farmId: true } } } } },
  })
  const rows = [...changed, ...withdrawn].sort((a, b) => (a.change < b.change ? -1 : 1)).slice(0, changesPerReadMax)
  const ids = rows.flatMap(({ bootId, edge }) => (edge ? [] : [bootId]))
  const boots = await readBootsById({ db, actor: { organizationId } }, ids)
  const places = ids.length > 0 ? await findPlaces(db, 'boot', { organizationId, ids }) : new Map<string, Place>()
  const now = clock()
  return {
    changes: rows.flatMap(({ change, bootId, edge }): FeedChange[] => {
      if (edge) {
        const place = { farmId: edge.site.farmId, siteId: edge.siteId, collectionId: null }
        return [{ change, event: { kind: 'withdrawn', bootId }, permission: 'edge.read', place }]
      }
      const [boot, place] = [boots.get(bootId), places.get(bootId)]
      // A boot of a site in the trash has no place.
      if (!boot || !place) return []
      return [{ change, event: { kind: 'boot', boot: bootSummaryOf(boot, now) }, permission: 'boot.read', place }]
    }),
    through: rows.at(-1)?.change ?? last,
    isFull: rows.length >= changesPerReadMax,
  }
}
