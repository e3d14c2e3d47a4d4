import type { Prisma } from '@bootfarm/db'
import type { DbOrTransaction } from '../context/service-context.ts'
import { defaultRule, type PlacementRule, type PlacementRules } from './placement-rule.ts'

export const placementSelect = {
  id: true,
  revision: true,
  inherits: true,
  changedAt: true,
  vdiskId: true,
  sites: {
    orderBy: { id: 'asc' },
    select: { siteId: true, edges: true, rateBytesPerSecond: true, windowFrom: true, windowTo: true },
  },
} satisfies Prisma.PlacementSelect
export type PlacementRow = Prisma.PlacementGetPayload<{ select: typeof placementSelect }>

export interface Placed {
  rules: PlacementRules
  /** Those are not the ones of the vDisk, or of the farm, that was asked about. */
  isInherited: boolean
  /** The row of the vDisk or the farm itself, also where it was taken back; null: nobody has made one. */
  own: PlacementRow | null
  /** When the rules were saved last; null: never. */
  changedAt: Date | null
}

/** Returns the placement of a vDisk or a farm: its own, else the farm's, else every edge of every site. */
export async function readPlacement(
  db: DbOrTransaction,
  { organizationId, farmId, vdiskId }: { organizationId: string; farmId: string; vdiskId: string | null },
): Promise<Placed> {
  const rows = await db.placement.findMany({
    where: { organizationId, farmId, OR: [{ vdiskId: null }, ...(vdiskId === null ? [] : [{ vdiskId }])] },
    select: placementSelect,
  })
  const own = rows.find((row) => row.vdiskId === vdiskId) ?? null
  const chosen = [own, ...rows].find((row) => row && !row.inherits) ?? null
  const changes = rows.map(({ changedAt }) => changedAt.getTime())
  return {
    rules: chosen ? rulesOf(chosen) : { sites: new Map(), others: defaultRule },
    isInherited: chosen === null || chosen !== own,
    own,
    changedAt: changes.length > 0 ? new Date(Math.max(...changes)) : null,
  }
}

function rulesOf({ sites }: PlacementRow): PlacementRules {
  const others = sites.find(({ siteId }) => siteId === null)
  return {
    sites: new Map(sites.flatMap((row) => (row.siteId === null ? [] : [[row.siteId, placementRuleOf(row)] as const]))),
    others: others ? placementRuleOf(others) : null,
  }
}

function placementRuleOf(row: PlacementRow['sites'][number]): PlacementRule {
  const { edges, rateBytesPerSecond, windowFrom, windowTo } = row
  return {
    edges,
    rateBytesPerSecond: rateBytesPerSecond === null ? null : Number(rateBytesPerSecond),
    window: windowFrom === null || windowTo === null ? null : { from: windowFrom, to: windowTo },
  }
}
