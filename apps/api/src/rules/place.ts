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
  'store',
  'store_job',
  'deletion',
] as const
export type PlaceKind = (typeof placeKinds)[number]

/**
 * Where an object lies. What is null is above it: a farm's place has no site, a schedule of the whole organization has
 * no farm.
 */
export interface Place {
  farmId: string | null
  siteId: string | null
  collectionId: string | null
}

/** Of the whole organization. */
export const organizationPlace: Place = { farmId: null, siteId: null, collectionId: null }

const levels = ['farmId', 'siteId', 'collectionId'] as const

/** Whether `place` is `scope` or lies within. */
export function covers(scope: Place, place: Place): boolean {
  return levels.every((level) => scope[level] === null || scope[level] === place[level])
}

/**
 * Whether `place` is on the way from the organization down to `scope`, so that its name is no secret to who has that.
 */
export function leadsTo(place: Place, scope: Place): boolean {
  return covers(place, scope)
}

/** What lies within both: the narrower one; null where neither is within the other. */
export function narrower(one: Place, other: Place): Place | null {
  if (covers(one, other)) return other
  return covers(other, one) ? one : null
}
