import type { DbOrTransaction } from '../context/service-context.ts'
import { planTransfers } from './plan-transfers.ts'
import { readFacts } from './read-facts.ts'
import type { Cell } from './transfer-facts.ts'

export interface LackingEdge extends Omit<Cell, 'versionId' | 'state'> {
  edgeName: string
  siteId: string
  siteName: string
  isOnline: boolean
  state: 'damaged' | 'fetching' | 'lacks'
}

export interface Spread {
  /** Edges that are to hold the version and do, or hold it anyway. */
  heldCount: number
  lacking: LackingEdge[]
}

interface OfVersion {
  organizationId: string
  vdiskId: string
  versionId: string
  now: Date
  /** Whether the control plane has an object store, which decides for what an edge waits. */
  hasObjects?: boolean
}

/** The edges that are to hold a version by its vDisk's placement, and do not; by site and name. */
export async function lackingEdges(db: DbOrTransaction, version: OfVersion): Promise<LackingEdge[]> {
  return (await readSpread(db, version)).lacking
}

/** How far a version has got. */
export async function readSpread(
  db: DbOrTransaction,
  { organizationId, vdiskId, versionId, now, hasObjects = true }: OfVersion,
): Promise<Spread> {
  const facts = await readFacts(db, { organizationId, vdiskId }, { now, hasObjects })
  if (!facts) return { heldCount: 0, lacking: [] }
  const cells = planTransfers(facts).cells.filter((cell) => cell.versionId === versionId)
  const lacking = cells.filter(({ state }) => state !== 'holds')
  const heldCount = cells.length - lacking.length
  if (lacking.length === 0) return { heldCount, lacking: [] }
  const edges = await db.edge.findMany({
    where: { organizationId, id: { in: lacking.map(({ edgeId }) => edgeId) } },
    orderBy: [{ site: { name: 'asc' } }, { siteId: 'asc' }, { name: 'asc' }, { id: 'asc' }],
    select: { id: true, name: true, siteId: true, site: { select: { name: true } } },
  })
  const online = new Set(facts.edges.flatMap(({ id, isOnline }) => (isOnline ? [id] : [])))
  return {
    heldCount,
    lacking: edges.flatMap(({ id, name, siteId, site }) => {
      const cell = lacking.find(({ edgeId }) => edgeId === id)
      if (!cell || cell.state === 'holds') return []
      const { versionId: _versionId, state, ...more } = cell
      const edge = { edgeName: name, siteId, siteName: site.name, isOnline: online.has(id), state }
      return [Object.assign(more, edge)]
    }),
  }
}
