import { type DbTransaction, inOrganization, Prisma } from '@bootfarm/db'
import { type EnrolRequest, type EnrolResponse, siteEdgesMax } from '@bootfarm/proto/uplink'
import { ownRow, type PlatformContext } from '../../context/service-context.ts'
import { hashJoinToken } from '../../edge/create-join-token.ts'
import { AppError } from '../../errors/app-error.ts'
import { requireNotSuspended } from '../../organization/require-not-suspended.ts'
import { readSigningKeys } from '../../organization/signing-keys.ts'
import { may } from '../../rules/actor.ts'
import { readGrants } from '../../session/public.ts'
import { recordOfEdge } from './record-of-edge.ts'

interface LockedToken {
  organization_id: string
  id: string
  site_id: string
  created_by_user_id: string | null
  expires_at: Date
  used_at: Date | null
  edge_id: string | null
}

/**
 * Uses up the join token for this public key. The same token with the same key gets the same answer again. The caller
 * has checked the signature by the key in the request. Throws `join_token_*`, `edge_revoked`, `invalid_body`,
 * `quota_exceeded`, `organization_suspended`.
 */
export async function enrolEdge(
  { db, clock }: PlatformContext,
  request: EnrolRequest,
  address: string | null = null,
): Promise<EnrolResponse> {
  const tokenHash = hashJoinToken(request.joinToken)
  const [known] = await db.$queryRaw<{ id: string | null }[]>`
    select join_token_organization(${tokenHash})::text as id`
  if (!known?.id) throw new AppError('join_token_unknown')
  return inOrganization(db, known.id, async (transaction) => {
    const [token] = await transaction.$queryRaw<LockedToken[]>`
      select organization_id::text, id::text, site_id::text, created_by_user_id::text, expires_at, used_at, edge_id::text
      from join_token
      where token_hash = ${tokenHash} for update`
    if (!token) throw new AppError('join_token_unknown')
    const edgeId = token.used_at
      ? await edgeOfUsedToken(transaction, token, request.publicKey)
      : await useToken(transaction, token, { request, address, now: clock() })
    return answer(transaction, token, edgeId)
  })
}

async function edgeOfUsedToken(transaction: DbTransaction, token: LockedToken, publicKey: string): Promise<string> {
  const edge = await transaction.edge.findFirst({
    where: { organizationId: token.organization_id, id: token.edge_id ?? '', publicKey },
    select: { id: true, revokedAt: true },
  })
  if (!edge) throw new AppError('join_token_used')
  if (edge.revokedAt) throw new AppError('edge_revoked')
  return edge.id
}

async function useToken(
  transaction: DbTransaction,
  token: LockedToken,
  { request, address, now }: { request: EnrolRequest; address: string | null; now: Date },
): Promise<string> {
  if (token.expires_at <= now) throw new AppError('join_token_expired')
  const { organization_id: organizationId, site_id: siteId } = token
  await requireMakerMayAdd(transaction, token)
  const knownEdgeId = await edgeOfKnownKey(transaction, token, request.publicKey)
  if (!knownEdgeId) {
    await requireNotSuspended(transaction, organizationId)
    await requireRoom(transaction, { organizationId, siteId })
  }
  const edgeId = knownEdgeId ?? (await createEdge(transaction, token, { request, now }))
  if (knownEdgeId)
    await transaction.edge.updateMany({
      where: { organizationId, id: knownEdgeId },
      data: { sealKey: request.sealKey ?? null },
    })
  await transaction.joinToken.update({
    where: ownRow({ organizationId }, token.id),
    data: { usedAt: now, edgeId },
  })
  await recordOfEdge({ db: transaction, now }, { organizationId, edgeId, address }, (place) => [
    {
      action: knownEdgeId ? 'edge.enrolAgain' : 'edge.enrol',
      kind: 'edge',
      id: edgeId,
      name: request.hostname || 'edge',
      place,
      before: knownEdgeId ? { joinTokenId: null } : null,
      after: { joinTokenId: token.id, publicKey: request.publicKey, agentVersion: request.agentVersion },
    },
  ])
  return edgeId
}

/** A token ends with the right of the person who made it; one of the set-up has no such person. */
async function requireMakerMayAdd(transaction: DbTransaction, token: LockedToken): Promise<void> {
  const { organization_id: organizationId, site_id: siteId, created_by_user_id: userId } = token
  if (userId === null) return
  const { farmId } = await transaction.site.findUniqueOrThrow({
    where: ownRow({ organizationId }, siteId),
    select: { farmId: true },
  })
  const grants = await readGrants(transaction, { organizationId, userId })
  if (may({ grants, onlyPermissions: null }, 'edge.change', { farmId, siteId, collectionId: null })) return
  throw new AppError('join_token_expired', {
    public: 'The person who created this join token can no longer add edges to its site. Create a new token.',
  })
}

async function createEdge(
  transaction: DbTransaction,
  { organization_id: organizationId, site_id: siteId }: LockedToken,
  { request, now }: { request: EnrolRequest; now: Date },
): Promise<string> {
  try {
    const edge = await transaction.edge.create({
      data: {
        organizationId,
        siteId,
        name: request.hostname || 'edge',
        publicKey: request.publicKey,
        sealKey: request.sealKey ?? null,
        arch: request.arch,
        agentVersion: request.agentVersion,
        enrolledAt: now,
      },
      select: { id: true },
    })
    return edge.id
  } catch (error) {
    // Another organization's edge is invisible here, but keys are unique across organizations.
    if (error instanceof Prisma.PrismaClientKnownRequestError && error.code === 'P2002') throw enrolledElsewhere()
    throw error
  }
}

function enrolledElsewhere(): AppError {
  return new AppError('invalid_body', { public: 'This key is already enrolled elsewhere. Generate a new one.' })
}

/** Edges of a site know each other, and a state names a bounded number of them. */
async function requireRoom(
  transaction: DbTransaction,
  { organizationId, siteId }: { organizationId: string; siteId: string },
): Promise<void> {
  const count = await transaction.edge.count({ where: { organizationId, siteId, revokedAt: null } })
  if (count < siteEdgesMax) return
  throw new AppError('invalid_body', {
    public: `This site already has ${siteEdgesMax} edges, the maximum. Revoke one first.`,
  })
}

/** An edge that lost its identity but kept its key regains that identity, at the site where it was enrolled. */
async function edgeOfKnownKey(
  transaction: DbTransaction,
  token: LockedToken,
  publicKey: string,
): Promise<string | null> {
  const edge = await transaction.edge.findUnique({
    where: { publicKey },
    select: { id: true, organizationId: true, siteId: true, revokedAt: true },
  })
  if (!edge) return null
  const isSameSite = edge.organizationId === token.organization_id && edge.siteId === token.site_id
  if (!isSameSite) throw enrolledElsewhere()
  if (edge.revokedAt) throw new AppError('edge_revoked')
  return edge.id
}

async function answer(transaction: DbTransaction, token: LockedToken, edgeId: string): Promise<EnrolResponse> {
  const { organization_id: organizationId, site_id: siteId } = token
  const site = await transaction.site.findUniqueOrThrow({
    where: ownRow({ organizationId }, siteId),
    select: { name: true },
  })
  const { newest } = await readSigningKeys(transaction, { organizationId })
  const signingKey = { id: newest.id, publicKey: newest.publicKey }
  return { edgeId, organizationId, siteId, siteName: site.name, signingKey }
}
