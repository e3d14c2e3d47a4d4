import type { DbOrTransaction } from '../context/service-context.ts'
import { planTransfers } from './plan-transfers.ts'
import { readFacts } from './read-facts.ts'

export interface LackingEdge {
  edgeId: string
  edgeName: string
  siteId: string
  siteName: string
  state: 'damaged' | 'fetching' | 'lacks'
  progressBytes: number
  totalBytes: number
}

interface OfVersion {
  organizationId: string
  vdiskId: string
  versionId: string
  now: Date
}

/** The edges that are to hold a version by its vDisk's placement, and do not; by site and name. */
export async function lackingEdges(
  db: DbOrTransaction,
  { organizationId, vdiskId, versionId, now }: OfVersion,
): Promise<LackingEdge[]> {
  const facts = await readFacts(db, { organizationId, vdiskId }, { now, hasObjects: true })
  if (!facts) return []
  const cells = planTransfers(facts).cells.filter((cell) => cell.versionId === versionId && cell.state !== 'holds')
  if (cells.length === 0) return []
  const edges = await db.edge.findMany({
    where: { organizationId, id: { in: cells.map(({ edgeId }) => edgeId) } },
    orderBy: [{ site: { name: 'asc' } }, { siteId: 'asc' }, { name: 'asc' }, { id: 'asc' }],
    select: { id: true, name: true, siteId: true, site: { select: { name: true } } },
  })
  return edges.flatMap(({ id, name, siteId, site }) => {
    const cell = cells.find(({ edgeId }) => edgeId === id)
    if (!cell || cell.state === 'holds') return []
    const { state, progressBytes, totalBytes } = cell
    return [{ edgeId: id, edgeName: name, siteId, siteName: site.name, state, progressBytes, totalBytes }]
  })
}
