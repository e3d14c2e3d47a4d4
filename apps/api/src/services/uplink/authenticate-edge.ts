import { uplinkSignedText, verifyText } from '@bootfarm/proto/uplink-signature'
import { AppError } from '../../errors/app-error.ts'
import type { SystemContext } from '../service-context.ts'

/** A signed request's facts, as sent. */
export interface SignedRequest {
  method: string
  /** Path and query, byte for byte. */
  path: string
  edgeId: string
  bootEpoch: number
  counter: number
  signature: string
  body: Uint8Array
}

/** An edge whose signature was found right. */
export interface AuthenticatedEdge {
  organizationId: string
  edgeId: string
  siteId: string
  bootEpoch: number
  counter: number
}

/**
 * Throws `edge_unknown`, `signature_invalid`, `edge_revoked`, and `stale_epoch` unless `anyEpoch`.
 * @param anyEpoch reports carry the epoch they are of in their body
 */
export async function authenticateEdge(
  { db }: SystemContext,
  request: SignedRequest,
  { anyEpoch }: { anyEpoch: boolean },
): Promise<AuthenticatedEdge> {
  const edge = await db.edge.findUnique({
    where: { id: request.edgeId },
    select: { organizationId: true, siteId: true, publicKey: true, revokedAt: true, bootEpoch: true },
  })
  if (!edge) throw new AppError('edge_unknown')
  if (!verifyText(uplinkSignedText(request), request.signature, edge.publicKey))
    throw new AppError('signature_invalid')
  if (edge.revokedAt) throw new AppError('edge_revoked')
  const { organizationId, siteId } = edge
  if (BigInt(request.bootEpoch) < edge.bootEpoch && !anyEpoch) throw new AppError('stale_epoch')
  if (BigInt(request.bootEpoch) > edge.bootEpoch)
    await db.edge.updateMany({
      where: { organizationId, id: request.edgeId, bootEpoch: { lt: request.bootEpoch } },
      data: { bootEpoch: request.bootEpoch },
    })
  return {
    organizationId,
    siteId,
    edgeId: request.edgeId,
    bootEpoch: request.bootEpoch,
    counter: request.counter,
  }
}
