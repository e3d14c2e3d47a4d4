import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import type { PlacementRule } from './placement-rule.ts'
import { type Placed, readPlacement } from './read-placement.ts'
import type { PlacementView } from './schema.ts'

/** Throws `not_found`. */
export async function getPlacement(context: ServiceContext, vdiskId: string): Promise<PlacementView> {
  const { db, actor } = context
  const vdisk = await db.vdisk.findUnique({ where: ownRow(actor, vdiskId), select: { farmId: true } })
  if (!vdisk) throw new AppError('not_found')
  const { farmId } = vdisk
  return viewOf(context, await readPlacement(db, { organizationId: actor.organizationId, farmId, vdiskId }))
}

export async function getFarmPlacement(context: ServiceContext, farmId: string): Promise<PlacementView> {
  const { db, actor } = context
  const { organizationId } = actor
  return viewOf(context, await readPlacement(db, { organizationId, farmId, vdiskId: null }))
}

/** Sites in the trash are left out. */
async function viewOf({ db, actor }: ServiceContext, { rules, own, isInherited }: Placed): Promise<PlacementView> {
  const { organizationId } = actor
  const sites = await db.site.findMany({
    where: { organizationId, id: { in: [...rules.sites.keys()] } },
    orderBy: [{ name: 'asc' }, { id: 'asc' }],
    select: { id: true, name: true },
  })
  return {
    // Of a placement that nobody has made, the first one.
    revision: (own?.revision ?? 0) + 1,
    isInherited,
    others: rules.others && ruleView(rules.others),
    sites: sites.flatMap(({ id, name }) => {
      const rule = rules.sites.get(id)
      return rule ? [Object.assign({ siteId: id, siteName: name }, ruleView(rule))] : []
    }),
  }
}

function ruleView({ edges, rateBytesPerSecond, window }: PlacementRule) {
  return { edges, rateBytesPerSecond, window }
}
