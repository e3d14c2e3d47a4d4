import type { z } from 'zod'
import { visibleCollections, visibleFarms, visibleSites } from '../access/visible.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { type Actor, mayGrant } from '../rules/actor.ts'
import { roles } from '../rules/permissions.ts'
import { organizationPlace, type Place } from '../rules/place.ts'
import type { grantableView } from './schema.ts'

type Grantable = z.infer<typeof grantableView>[number]

/** More places than this are not offered by name; a person with so many of them works with a role above. */
const placesMax = 200

/**
 * Every place in which the actor may give roles, and which: the whole organization, then farms, sites and collections
 * by name.
 */
export async function listGrantable({ db, actor }: ServiceContext): Promise<z.infer<typeof grantableView>> {
  const { organizationId } = actor
  const rows = { orderBy: { name: 'asc' as const }, take: placesMax }
  const farms = await db.farm.findMany({
    where: { organizationId, AND: visibleFarms(actor) },
    select: { id: true, name: true },
    ...rows,
  })
  const sites = await db.site.findMany({
    where: { organizationId, AND: visibleSites(actor) },
    select: { id: true, name: true, farmId: true },
    ...rows,
  })
  const collections = await db.collection.findMany({
    where: { organizationId, AND: visibleCollections(actor) },
    select: { id: true, name: true, siteId: true, site: { select: { name: true, farmId: true } } },
    ...rows,
  })
  const places: [Grantable['scope'], Place][] = [
    [{ kind: 'organization', id: null, name: 'the whole organization' }, organizationPlace],
    ...farms.map(({ id, name }): [Grantable['scope'], Place] => [
      { kind: 'farm', id, name },
      { farmId: id, siteId: null, collectionId: null },
    ]),
    ...sites.map(({ id, name, farmId }): [Grantable['scope'], Place] => [
      { kind: 'site', id, name },
      { farmId, siteId: id, collectionId: null },
    ]),
    ...collections.map(({ id, name, siteId, site }): [Grantable['scope'], Place] => [
      { kind: 'collection', id, name: `${name} in ${site.name}` },
      { farmId: site.farmId, siteId, collectionId: id },
    ]),
  ]
  return places.map(([scope, place]) => grantableAt(actor, scope, place)).filter((at) => at.roles.length > 0)
}

function grantableAt(actor: Actor, scope: Grantable['scope'], place: Place): Grantable {
  return { scope, roles: roles.filter((role) => mayGrant(actor, role, place)) }
}
