import { Prisma } from '@bootfarm/db'
import { may } from '../../domain/actor.ts'
import type { Place, PlaceKind } from '../../domain/place.ts'
import { AppError } from '../../errors/app-error.ts'
import { findPlaces } from '../scope/find-place.ts'
import type { DbOrTransaction, ServiceContext } from '../service-context.ts'

const tables = {
  farm: Prisma.sql`farm`,
  site: Prisma.sql`site`,
  collection: Prisma.sql`collection`,
  device: Prisma.sql`device`,
  vdisk: Prisma.sql`vdisk`,
  version: Prisma.sql`vdisk_version`,
  store: Prisma.sql`store`,
  edge: Prisma.sql`edge`,
  boot_menu: Prisma.sql`boot_menu`,
} as const
export type RevisedKind = keyof typeof tables & PlaceKind

interface Wanted {
  kind: RevisedKind
  id: string
  /** What the caller has seen; undefined: whatever it is now. */
  revision?: number | undefined
}

/** Entries of the audit log that a refused change is answered with. */
const changesToldMax = 3

/**
 * Locks the object until the transaction ends. Throws `not_found`; `conflict`, with the revision that it has now, where somebody has
 * changed it since the caller saw it: who and what is said to those who may read the audit log.
 * @returns where it lies
 */
export async function requireCurrent(
  context: Pick<ServiceContext, 'actor'> & { db: DbOrTransaction },
  { kind, id, revision }: Wanted,
): Promise<Place> {
  const { db, actor } = context
  const { organizationId } = actor
  const [row] = await db.$queryRaw<{ revision: number }[]>`select revision from ${tables[kind]}
    where organization_id = ${organizationId}::uuid and id = ${id}::uuid for no key update`
  const place = (await findPlaces(db, kind, { organizationId, ids: [id] })).get(id)
  if (!row || !place) throw new AppError('not_found')
  if (revision === undefined || revision === row.revision) return place
  const story = may(actor, 'audit.read', place)
    ? await tellChanges(context, { objectId: id, count: row.revision - revision })
    : ''
  throw staleError(nouns[kind], story, row.revision)
}

/** @param story what `tellChanges` says; empty where nothing may be said */
export function staleError(noun: string, story: string, revision: number): AppError {
  return new AppError('conflict', {
    public: `This ${noun} was changed meanwhile${story || '. Load it again to see how.'}`,
    extra: { revision },
  })
}

const nouns: Record<RevisedKind, string> = {
  farm: 'farm',
  site: 'site',
  collection: 'collection',
  device: 'device',
  vdisk: 'vDisk',
  version: 'version',
  store: 'store',
  edge: 'edge',
  boot_menu: 'boot menu',
}

/** Each change that counts is an entry of the log: the last ones are those that the caller has not seen. */
export async function tellChanges(
  { db, actor }: Pick<ServiceContext, 'actor'> & { db: DbOrTransaction },
  { count, ...which }: { objectId: string; action?: Prisma.StringFilter; count: number },
): Promise<string> {
  const entries = await db.auditEntry.findMany({
    where: { organizationId: actor.organizationId, ...which },
    orderBy: [{ at: 'desc' }, { id: 'desc' }],
    take: Math.max(1, Math.min(count, changesToldMax)),
    select: { actorName: true, at: true, after: true },
  })
  const told = entries.map(({ actorName, at, after }) => {
    const fields = Object.keys((after ?? {}) as object).map(wordsOf)
    return `${actorName} changed ${fields.join(', ') || 'it'} at ${at.toISOString().slice(11, 16)} UTC`
  })
  return told.length > 0 ? `: ${told.join('; ')}.` : ''
}

/** `bootMenuId` as people say it. */
function wordsOf(field: string): string {
  return field
    .replace(/Id$/, '')
    .replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
    .replace(/^vdisk$/, 'vDisk')
}
