/** Kinds of objects that a procedure can name as the place of what it does. */
const placeKinds = [
  'farm',
  'site',
  'edge',
  'collection',
  'device',
  'boot',
  'vdisk',
  'version',
  'boot_menu',
  'schedule',
  'schedule_run',
  'finding',
  'rollout',
  'experiment',
  'alert',
  'store',
  'store_job',
  'deletion',
] as const
export type PlaceKind = (typeof placeKinds)[number]

/**
 * The place of an object. Null fields are above it: a farm's place has no site, a schedule of the whole organization
 * has no farm.
 */
export interface Place {
  farmId: string | null
  siteId: string | null
  collectionId: string | null
}

export const organizationPlace: Place = { farmId: null, siteId: null, collectionId: null }

const levels = ['farmId', 'siteId', 'collectionId'] as const

/** Returns whether `place` is `scope` or below it. */
export function covers(scope: Place, place: Place): boolean {
  return levels.every((level) => scope[level] === null || scope[level] === place[level])
}

/**
 * Returns whether `place` is on the path from the organization down to `scope`, so that its name is no secret to a
 * person with that scope.
 */
export function leadsTo(place: Place, scope: Place): boolean {
  return covers(place, scope)
}

/** Returns the narrower one if one is below the other; otherwise null. */
export function narrower(one: Place, other: Place): Place | null {
  if (covers(one, other)) return other
  return covers(other, one) ? one : null
}

interface ScopeRow {
  farmId: string | null
  siteId: string | null
  collectionId: string | null
  site: { farmId: string } | null
  collection: { siteId: string; site: { farmId: string } } | null
}

/** Returns the whole path of a scope, of which a row names only the lowest object. */
export function scopePlaceOf({ farmId, siteId, collectionId, site, collection }: ScopeRow): Place {
  return {
    farmId: farmId ?? site?.farmId ?? collection?.site.farmId ?? null,
    siteId: siteId ?? collection?.siteId ?? null,
    collectionId,
  }
}
