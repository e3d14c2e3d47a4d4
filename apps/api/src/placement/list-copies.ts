import type { ServiceContext } from '../context/service-context.ts'
import type { Objects } from '../difference/public.ts'
import { heartbeatOf } from '../edge/public.ts'
import { AppError } from '../errors/app-error.ts'
import { may } from '../rules/actor.ts'
import { planTransfers } from './plan-transfers.ts'
import { readFacts } from './read-facts.ts'
import type { CopiesView, CopyView } from './schema.ts'
import type { Cell } from './transfer-facts.ts'

/** More are counted only. */
const edgesShownMax = 100

/**
 * Says which edges hold, fetch or lack each version of a vDisk, among those that the caller may see: what the keeper
 * would find now. Throws `not_found`.
 */
export async function listCopies(
  { db, clock, actor, objects }: ServiceContext & { objects: Objects },
  vdiskId: string,
): Promise<CopiesView> {
  const { organizationId } = actor
  const facts = await readFacts(db, { organizationId, vdiskId }, { now: clock(), hasObjects: objects.areOpen })
  if (!facts) throw new AppError('not_found')
  const { cells } = planTransfers(facts)
  const rows = await db.edge.findMany({
    where: { organizationId, id: { in: [...new Set(cells.map(({ edgeId }) => edgeId))] } },
    orderBy: [{ site: { name: 'asc' } }, { siteId: 'asc' }, { name: 'asc' }, { id: 'asc' }],
    select: { id: true, name: true, siteId: true, heartbeat: true, site: { select: { name: true, farmId: true } } },
  })
  const visible = rows.filter(({ siteId, site: { farmId } }) =>
    may(actor, 'edge.read', { farmId, siteId, collectionId: null }),
  )
  const shown = visible.slice(0, edgesShownMax)
  const shownIds = new Set(shown.map(({ id }) => id))
  const repairs = new Map(
    shown.flatMap((edge) =>
      (heartbeatOf(edge)?.repairs ?? []).map((repair) => [`${repair.versionId} ${edge.id}`, repair] as const),
    ),
  )
  const online = new Set(facts.edges.flatMap(({ id, isOnline }) => (isOnline ? [id] : [])))
  return {
    versions: facts.versions.map(({ id, number }) => ({ id, number })).reverse(),
    edges: shown.map(({ id, name, siteId, site }) => ({
      id,
      name,
      siteId,
      siteName: site.name,
      isOnline: online.has(id),
    })),
    edgeCount: visible.length,
    copies: cells
      .filter(({ edgeId }) => shownIds.has(edgeId))
      .map((cell) => copyViewOf(cell, repairs.get(`${cell.versionId} ${cell.edgeId}`))),
  }
}

function copyViewOf(
  { message, retryAt, ...cell }: Cell,
  repair: { repaired: number; failed: number } | undefined,
): CopyView {
  return {
    ...cell,
    retryAt: retryAt?.toISOString() ?? null,
    untrusted: { message },
    repaired: repair?.repaired ?? 0,
    notRepaired: repair?.failed ?? 0,
  }
}
