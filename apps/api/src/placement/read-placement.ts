import type { Prisma } from '@bootfarm/db'
import type { DbOrTransaction } from '../context/service-context.ts'
import { defaultRule, type PlacementRule, type PlacementRules } from './placement-rule.ts'

export const placementSelect = {
  id: true,
  revision: true,
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
  /** Null: nobody has made a placement. */
  row: PlacementRow | null
  changedAt: Date | null
}

/** Returns the placement of a vDisk: its own, else its farm's, else every edge of every site. */
export async function readPlacement(
  db: DbOrTransaction,
  { organizationId, farmId, vdiskId }: { organizationId: string; farmId: string; vdiskId: string | null },
): Promise<Placed> {
  const rows = await db.placement.findMany({
    where: { organizationId, farmId, OR: [{ vdiskId: null }, ...(vdiskId === null ? [] : [{ vdiskId }])] },
    select: placementSelect,
  })
  const row = rows.find((one) => one.vdiskId !== null) ?? rows[0] ?? null
  return {
    rules: row ? rulesOf(row) : { sites: new Map(), others: defaultRule },
    row,
    changedAt: row?.changedAt ?? null,
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
