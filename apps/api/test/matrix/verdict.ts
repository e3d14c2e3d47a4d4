import { findPlaces } from '../../src/access/find-place.ts'
import type { MemberPolicy } from '../../src/http/trpc/policy.ts'
import type { Grant } from '../../src/rules/actor.ts'
import { permissions } from '../../src/rules/permissions.ts'
import type { Place, PlaceKind } from '../../src/rules/place.ts'
import type { TestApi } from '../test-api.ts'

/**
 * The promise of a policy to a caller; `within`: its service accepts objects within the role's place and refuses all
 * others.
 */
export type Verdict = 'ok' | 'forbidden' | 'absent' | 'within'

/** Texts with these are no secret to a role further down: docs and pages name the site of one's collection. */
const seenFromBelow: ReadonlySet<PlaceKind> = new Set([
  'farm',
  'site',
  'edge',
  'vdisk',
  'version',
  'boot_menu',
  'store_job',
])
const levels = ['farmId', 'siteId', 'collectionId'] as const

const isWithin = (inner: Place, outer: Place) =>
  levels.every((level) => outer[level] === null || outer[level] === inner[level])

/**
 * Works the answer out from the policy's data alone: whose role it is, where that holds, and where the input's objects
 * lie.
 */
export async function verdictOf(
  api: TestApi,
  { permission, place }: MemberPolicy,
  {
    grant,
    organizationId,
    input,
    isList,
  }: {
    grant: Grant
    organizationId: string
    input: Record<string, unknown>
    isList: boolean
  },
): Promise<Verdict> {
  const { roles, ...more } = permissions[permission]
  const isEverywhere = levels.every((level) => grant.scope[level] === null)
  if (!(roles as readonly string[]).includes(grant.role)) return 'forbidden'
  if (isEverywhere) return 'ok'
  if (place === 'organization') return 'forbidden'
  if (place === 'visible') return isList ? 'ok' : 'within'
  const holds: boolean[] = []
  for (const { kind, id } of [place].flat()) {
    const ids = [input[id]].flat().filter((one): one is string => typeof one === 'string')
    const places = await findPlaces(api.db, kind, { organizationId, ids })
    for (const one of places.values()) {
      const leadsThere = isWithin(grant.scope, one)
      if (!isWithin(one, grant.scope) && !(leadsThere && seenFromBelow.has(kind))) return 'absent'
      holds.push(isWithin(one, grant.scope) || (leadsThere && 'upwards' in more))
    }
  }
  return holds.every(Boolean) ? 'ok' : 'forbidden'
}
