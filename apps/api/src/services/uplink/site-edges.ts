import { randomBytes } from 'node:crypto'
import { type SiteEdges, siteEdgesMax } from '@bootfarm/proto/uplink'
import type { SitePlace } from '../discovery/discovered-rows.ts'
import { heartbeatOf } from '../edge/edge-rows.ts'
import type { DbOrTransaction } from '../service-context.ts'

const edgeKeySizeBytes = 32

/**
 * What each edge of the site has to know of the others; undefined where there is only one. Of heartbeats only address and port
 * go in, which stay as they are from one to the next, so that a state is not made anew for each.
 */
export async function readSiteEdges(db: DbOrTransaction, place: SitePlace): Promise<SiteEdges | undefined> {
  const edges = await db.edge.findMany({
    where: { ...place, revokedAt: null },
    orderBy: [{ enrolledAt: 'asc' }, { id: 'asc' }],
    take: siteEdgesMax,
    select: { id: true, weight: true, subnets: true, draining: true, heartbeat: true },
  })
  if (edges.length < 2) return undefined
  return {
    key: Buffer.from(await ensureEdgeKey(db, place)).toString('base64'),
    edges: edges.map(({ heartbeat, ...edge }) => {
      const { address = null, peerPort = null } = heartbeatOf({ heartbeat }) ?? {}
      return { ...edge, address, peerPort }
    }),
  }
}

/** The site's key; the first one is made when it is first needed. Two programs that need it at once get the same. */
async function ensureEdgeKey(
  db: DbOrTransaction,
  { organizationId, siteId }: SitePlace,
): Promise<Uint8Array> {
  const where = { organizationId_id: { organizationId, id: siteId } }
  const { edgeKey } = await db.site.findUniqueOrThrow({ where, select: { edgeKey: true } })
  if (edgeKey) return edgeKey
  await db.site.updateMany({
    where: { organizationId, id: siteId, edgeKey: null },
    data: { edgeKey: newEdgeKey() },
  })
  const made = await db.site.findUniqueOrThrow({ where, select: { edgeKey: true } })
  if (!made.edgeKey) throw new Error('a key that was just made has gone')
  return made.edgeKey
}

export function newEdgeKey(): Uint8Array<ArrayBuffer> {
  return new Uint8Array(randomBytes(edgeKeySizeBytes))
}
