import type { DbOrTransaction } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { type Actor, type Grant, grantsFor, may, scopesOf } from '../rules/actor.ts'
import type { Permission } from '../rules/permissions.ts'
import { organizationPlace, type Place, type PlaceKind } from '../rules/place.ts'
import { findPlaces } from './find-place.ts'

/** The place of an action: the organization, wherever the actor may act, or these objects. */
export type AskedPlaces = 'organization' | 'visible' | { kind: PlaceKind; ids: string[] }[]

/** The permission to see an object: an actor without it gets the same answer as if the object did not exist. */
const readPermissions: Record<PlaceKind, Permission> = {
  farm: 'farm.read',
  site: 'site.read',
  edge: 'edge.read',
  collection: 'collection.read',
  device: 'device.read',
  boot: 'boot.read',
  vdisk: 'vdisk.read',
  version: 'vdisk.read',
  boot_menu: 'boot_menu.read',
  schedule: 'schedule.read',
  schedule_run: 'schedule.read',
  finding: 'finding.read',
  rollout: 'rollout.read',
  experiment: 'experiment.read',
  alert: 'alert.read',
  store: 'store.read',
  store_job: 'vdisk.read',
  deletion: 'trash.read',
}

/** The decision about the actor's request. */
type Judgement =
  | { verdict: 'allowed'; grants: Grant[] }
  | { verdict: 'forbidden' }
  /** It is answered as if it were not there. */
  | { verdict: 'unseen' }

/**
 * Decides about an action of the actor on an object of this kind at that place; kind null: on the organization as a
 * whole.
 */
export function judge(
  actor: Actor,
  permission: Permission,
  { kind, place }: { kind: PlaceKind | null; place: Place },
): Judgement {
  if (kind && !may(actor, readPermissions[kind], place)) return { verdict: 'unseen' }
  const grants = grantsFor(actor, permission, place)
  return grants.length > 0 ? { verdict: 'allowed', grants } : { verdict: 'forbidden' }
}

/**
 * Returns the place of the first of the objects. Throws `forbidden`; `not_found` if one of the objects is absent,
 * belongs to another organization, or is invisible to the actor.
 */
export async function authorise(
  { db, actor }: { db: DbOrTransaction; actor: Actor },
  { permission }: { permission: Permission },
  places: AskedPlaces,
): Promise<Place> {
  if (scopesOf(actor, permission).length === 0) throw new AppError('forbidden')
  if (places === 'visible') return organizationPlace
  if (places === 'organization') {
    const { verdict } = judge(actor, permission, { kind: null, place: organizationPlace })
    if (verdict !== 'allowed') throw new AppError('forbidden')
    return organizationPlace
  }
  let first: Place | undefined
  for (const { kind, ids } of places) {
    const found = await findPlaces(db, kind, { organizationId: actor.organizationId, ids })
    const verdicts = new Set(
      ids.map((id) => {
        const place = found.get(id)
        return place ? judge(actor, permission, { kind, place }).verdict : 'unseen'
      }),
    )
    if (verdicts.has('unseen')) throw new AppError('not_found')
    if (verdicts.has('forbidden')) throw new AppError('forbidden')
    first ??= found.get(ids[0] ?? '')
  }
  return first ?? organizationPlace
}
