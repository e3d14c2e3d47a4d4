import { z } from 'zod'
import { pageInput, pageOf } from './page.ts'

const uuid = z.uuid()
const instant = z.iso.datetime()
const count = z.number().int().nonnegative()
const statePair = z.object({ incarnation: count, counter: count })

export const edgeListInput = z.object({ ...pageInput, siteId: uuid.optional() })
export const edgeSummary = z.object({
  id: uuid,
  name: z.string(),
  siteId: uuid,
  siteName: z.string(),
  online: z.boolean(),
  agentVersion: z.string(),
  arch: z.string(),
  enrolledAt: instant,
  revokedAt: instant.nullable(),
  /** Null until the first heartbeat. */
  heartbeatAt: instant.nullable(),
  devicesBooting: count,
  reportBacklog: count,
})
export type EdgeSummary = z.infer<typeof edgeSummary>
export const edgePage = pageOf(edgeSummary)

export const edgeGetInput = z.object({ edgeId: uuid })
export const edgeDetail = edgeSummary.extend({
  bootEpoch: count,
  uptimeMs: count.nullable(),
  /** The edge's clock minus the API's at the last heartbeat. */
  clockOffsetMs: z.number().int().nullable(),
  /** Packets and requests that the edge ignored since its start, most first. */
  ignored: z.array(z.object({ reason: z.string(), count })),
  /** Null until an edge has asked for its state. */
  desiredState: statePair.nullable(),
  appliedState: statePair.nullable(),
  /** Records that the edge declared lost. */
  reportsLost: count,
})
export type EdgeDetail = z.infer<typeof edgeDetail>

export const createJoinTokenInput = z.object({ siteId: uuid })
/** The token is shown once: only its hash is kept. */
export const createdJoinToken = z.object({ id: uuid, token: z.string(), expiresAt: instant })
