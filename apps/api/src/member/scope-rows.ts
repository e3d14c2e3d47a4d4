import type { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import { findPlaces } from '../access/find-place.ts'
import type { DbOrTransaction } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { organizationPlace, type Place } from '../rules/place.ts'
import type { ScopeInput, scopeView } from './schema.ts'

/** The place of a role grant or an invitation, with the names on the path. */
export const scopeSelect = {
  farmId: true,
  siteId: true,
  collectionId: true,
  farm: { select: { name: true } },
  site: { select: { name: true, farmId: true } },
  collection: { select: { name: true, siteId: true, site: { select: { name: true, farmId: true } } } },
} as const satisfies Prisma.RoleGrantSelect

type ScopeRow = Prisma.RoleGrantGetPayload<{ select: typeof scopeSelect }>

export function scopeViewOf(row: ScopeRow): z.infer<typeof scopeView> {
  const { collection, site, farm } = row
  // Objects in the trash are invisible; the role remains, and applies again when the object is restored.
  const name = (text: string | undefined) => text ?? deletedName
  if (row.collectionId)
    return {
      kind: 'collection',
      id: row.collectionId,
      name: name(collection ? `${collection.name} in ${name(collection.site?.name)}` : undefined),
    }
  if (row.siteId) return { kind: 'site', id: row.siteId, name: name(site?.name) }
  if (row.farmId) return { kind: 'farm', id: row.farmId, name: name(farm?.name) }
  return { kind: 'organization', id: null, name: 'the whole organization' }
}

const deletedName = '(deleted)'

/** `operator of the site Berlin`, as in sentences. */
export function roleWords(role: string, scope: z.infer<typeof scopeView>): string {
  const name = role.replace('_', ' ')
  return scope.kind === 'organization'
    ? `${name} of the whole organization`
    : `${name} of the ${scope.kind} ${scope.name}`
}

/** The place that the input names. Throws `not_found` where it is none of the organization's. */
export async function placeOfScope(
  db: DbOrTransaction,
  organizationId: string,
  { farmId, siteId, collectionId }: ScopeInput,
): Promise<Place> {
  const [kind, id] = collectionId
    ? (['collection', collectionId] as const)
    : siteId
      ? (['site', siteId] as const)
      : (['farm', farmId] as const)
  if (!id) return organizationPlace
  const place = (await findPlaces(db, kind, { organizationId, ids: [id] })).get(id)
  if (!place) throw new AppError('not_found')
  return place
}
