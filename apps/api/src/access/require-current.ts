import type { Prisma } from '@bootfarm/db'
import type { DbOrTransaction, ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { may } from '../rules/actor.ts'
import type { Place } from '../rules/place.ts'
import { findPlaces, objectKinds } from './find-place.ts'

/** Those that are changed by the revision that was seen; a schedule's change locks more than its row. */
type RevisedKind = Exclude<keyof typeof objectKinds, 'schedule'>

interface Wanted {
  kind: RevisedKind
  id: string
  /** The revision that the caller has seen; undefined: any. */
  revision?: number | undefined
}

/** Entries of the audit log that a refused change is answered with. */
const changesToldMax = 3

/**
 * Locks the object until the transaction ends. Throws `not_found`; `conflict`, with the revision that it has now, where
 * somebody has changed it since the caller saw it: who and what is said to those who may read the audit log.
 * @returns where it lies
 */
export async function requireCurrent(
  context: Pick<ServiceContext, 'actor'> & { db: DbOrTransaction },
  { kind, id, revision }: Wanted,
): Promise<Place> {
  const { db, actor } = context
  const { organizationId } = actor
  const [row] = await db.$queryRaw<{ revision: number }[]>`select revision from ${objectKinds[kind].table}
    where organization_id = ${organizationId}::uuid and id = ${id}::uuid for no key update`
  const place = (await findPlaces(db, kind, { organizationId, ids: [id] })).get(id)
  if (!row || !place) throw new AppError('not_found')
  if (revision === undefined || revision === row.revision) return place
  const story = may(actor, 'audit.read', place)
    ? await tellChanges(context, { objectId: id, count: row.revision - revision })
    : ''
  throw staleError(objectKinds[kind].noun, story, row.revision)
}

/** @param story the text of `tellChanges`; empty if nothing may be shown */
export function staleError(noun: string, story: string, revision: number): AppError {
  return new AppError('conflict', {
    public: `This ${noun} was changed in the meantime${story || '. Load the latest version to see how.'}`,
    extra: { revision },
  })
}

/** Each change is an entry of the log: the last ones are those that the caller has not seen. */
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

/** `bootMenuId` in people's words. */
function wordsOf(field: string): string {
  return field
    .replace(/Id$/, '')
    .replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
    .replace(/^vdisk$/, 'vDisk')
}
