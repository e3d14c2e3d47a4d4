import { inOrganization } from '@bootfarm/db'
import { uplinkSignedText, verifyText } from '@bootfarm/proto/uplink-signature'
import type { AuthenticatedEdge, PlatformContext } from '../../context/service-context.ts'
import { AppError } from '../../errors/app-error.ts'
import { type AcceptedVersions, requireVersion } from './require-version.ts'

export interface SignedRequest {
  method: string
  /** Path and query, byte for byte. */
  path: string
  edgeId: string
  bootEpoch: number
  counter: number
  signature: string
  /** The version that it speaks: `bootfarm-uplink`. */
  uplinkVersion: number
  body: Uint8Array
}

/** Whom an edge id names. Nothing is proved yet. */
export interface EdgeIdentity {
  organization_id: string
  site_id: string
  public_key: string
  revoked_at: Date | null
  boot_epoch: bigint
}

/** Throws `edge_unknown`. */
export async function findEdgeIdentity({ db }: PlatformContext, edgeId: string): Promise<EdgeIdentity> {
  const [edge] = await db.$queryRaw<EdgeIdentity[]>`
    select organization_id::text, site_id::text, public_key, revoked_at, boot_epoch
    from edge_identity(${edgeId}::uuid)`
  if (!edge) throw new AppError('edge_unknown')
  return edge
}

/**
 * Throws `signature_invalid`, `edge_revoked`, `edge_too_old`, `edge_too_new`, and `stale_epoch` unless
 * `anyEpoch`.
 * @param anyEpoch the epoch of reports is in their body
 */
export async function authenticateEdge(
  { db, clock }: PlatformContext,
  edge: EdgeIdentity,
  request: SignedRequest,
  { anyEpoch, accepted }: { anyEpoch: boolean; accepted: AcceptedVersions },
): Promise<AuthenticatedEdge> {
  if (!verifyText(uplinkSignedText(request), request.signature, edge.public_key))
    throw new AppError('signature_invalid')
  if (edge.revoked_at) throw new AppError('edge_revoked')
  const { organization_id: organizationId, site_id: siteId, boot_epoch: bootEpoch } = edge
  await requireVersion({ db, clock }, { organizationId, edgeId: request.edgeId }, { request, accepted })
  if (BigInt(request.bootEpoch) < bootEpoch && !anyEpoch) throw new AppError('stale_epoch')
  if (BigInt(request.bootEpoch) > bootEpoch)
    await inOrganization(db, organizationId, (transaction) =>
      transaction.edge.updateMany({
        where: { organizationId, id: request.edgeId, bootEpoch: { lt: request.bootEpoch } },
        data: { bootEpoch: request.bootEpoch },
      }),
    )
  return {
    organizationId,
    siteId,
    edgeId: request.edgeId,
    bootEpoch: request.bootEpoch,
    counter: request.counter,
  }
}
