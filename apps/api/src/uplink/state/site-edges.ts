import { createHmac } from 'node:crypto'
import { type SiteEdges, siteEdgesMax } from '@bootfarm/proto/uplink'
import { type DbOrTransaction, ownRow } from '../../context/service-context.ts'
import type { SitePlace } from '../../discovery/rows.ts'
import { newEdgeKey, openedEdgeKey } from '../../edge/edge-key.ts'
import { heartbeatOf } from '../../edge/rows.ts'

/**
 * Returns what each edge of the site must know about the others; undefined if there is only one. From heartbeats it
 * takes only address and port, which stay the same from one to the next, so that a heartbeat does not make a new state.
 */
export async function readSiteEdges(db: DbOrTransaction, place: SitePlace, now: Date): Promise<SiteEdges | undefined> {
  const edges = await db.edge.findMany({
    where: { ...place, revokedAt: null },
    orderBy: [{ enrolledAt: 'asc' }, { id: 'asc' }],
    take: siteEdgesMax,
    select: { id: true, weight: true, subnets: true, draining: true, heartbeat: true },
  })
  if (edges.length < 2) return undefined
  const key = await ensureEdgeKey(db, place)
  return {
    key: Buffer.from(key).toString('base64'),
    ticketKeys: ticketKeysAt(key, now),
    edges: edges.map(({ heartbeat, ...edge }) => {
      const { address = null, peerPort = null, streamPort = null } = heartbeatOf({ heartbeat }) ?? {}
      return { ...edge, address, peerPort, streamPort }
    }),
  }
}

const ticketKeyPeriodMs = 30 * 86_400_000

/**
 * The key of this period seals tickets. The second key is the previous one in the period's first half, and the next one
 * in its second half: edges whose states are two weeks apart open each other's tickets, which are valid for one.
 */
function ticketKeysAt(siteKey: Uint8Array, now: Date): string[] {
  const half = Math.floor((now.getTime() * 2) / ticketKeyPeriodMs)
  const period = Math.floor(half / 2)
  return [period, half % 2 === 0 ? period - 1 : period + 1].map((number) =>
    createHmac('sha256', siteKey).update(`bootfarm-ticket-key-v1 ${number}`).digest('base64'),
  )
}

/** Returns when the keys for tickets are other ones than now. */
export function ticketKeysChangeMs(now: Date): number {
  const halfMs = ticketKeyPeriodMs / 2
  return (Math.floor(now.getTime() / halfMs) + 1) * halfMs
}

/** Returns the site's key, created when it is first needed. Two programs that need it at once get the same key. */
async function ensureEdgeKey(db: DbOrTransaction, { organizationId, siteId }: SitePlace): Promise<Uint8Array> {
  const where = ownRow({ organizationId }, siteId)
  const { edgeKey } = await db.site.findUniqueOrThrow({ where, select: { edgeKey: true } })
  const place = { organizationId, siteId }
  if (edgeKey) return openedEdgeKey(place, edgeKey)
  await db.site.updateMany({
    where: { organizationId, id: siteId, edgeKey: null },
    data: { edgeKey: newEdgeKey(place) },
  })
  const made = await db.site.findUniqueOrThrow({ where, select: { edgeKey: true } })
  if (!made.edgeKey) throw new Error('a key that was just made has gone')
  return openedEdgeKey(place, made.edgeKey)
}
