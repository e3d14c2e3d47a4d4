import { createHash } from 'node:crypto'
import type { DbTransaction } from '@bootfarm/db'
import type { SigningKeyStatement, StateEnvelope } from '@bootfarm/proto/uplink'
import { signText, stateSignedText } from '@bootfarm/proto/uplink-signature'
import { canonicalJson } from '../../domain/canonical-json.ts'
import type { StatePair } from '../../domain/state-pair.ts'
import { AppError } from '../../errors/app-error.ts'
import type { SystemContext } from '../service-context.ts'
import type { AuthenticatedEdge } from './authenticate-edge.ts'
import { readSigningKeys } from './signing-keys.ts'
import { readStateContent, type StateContent } from './state-content.ts'

export interface SignedState {
  pair: StatePair
  envelope: StateEnvelope
}

const storedSelect = {
  incarnation: true,
  counter: true,
  contentHash: true,
  payload: true,
  signature: true,
  signingKeyId: true,
} as const

interface StoredState {
  incarnation: number
  counter: bigint
  payload: string
  signature: string
  signingKeyId: string
}

/** The edge's desired state, signed: the stored one while its content is what it was, else a new one with the next counter. */
export async function currentState(context: SystemContext, edge: AuthenticatedEdge): Promise<SignedState> {
  const { db, clock } = context
  await requireAccepted(db, edge)
  const stored = await db.desiredState.findUnique({ where: keyOf(edge), select: storedSelect })
  const content = await readStateContent(db, edge, clock())
  const { keys, newest } = await readSigningKeys(db, edge)
  const isCurrent = stored?.contentHash === hashOf(content) && stored.signingKeyId === newest.id
  if (stored && isCurrent) return signedStateOf(stored, keys)
  return db.$transaction((transaction) => renewState(transaction, edge, clock()))
}

/**
 * Decides again under a lock on the edge's row, for two requests of an edge may come to two API processes. Throws `edge_revoked`.
 */
async function renewState(
  transaction: DbTransaction,
  edge: AuthenticatedEdge,
  now: Date,
): Promise<SignedState> {
  const { organizationId, edgeId } = edge
  const [row] = await transaction.$queryRaw<{ revoked_at: Date | null }[]>`select revoked_at from edge
    where organization_id = ${organizationId}::uuid and id = ${edgeId}::uuid for no key update`
  // Revoked while it waited: the site's new key is not for it.
  if (!row || row.revoked_at) throw new AppError('edge_revoked')
  const stored = await transaction.desiredState.findUnique({ where: keyOf(edge), select: storedSelect })
  const content = await readStateContent(transaction, edge, now)
  const contentHash = hashOf(content)
  const { keys, newest } = await readSigningKeys(transaction, edge)
  if (stored && stored.contentHash === contentHash && stored.signingKeyId === newest.id)
    return signedStateOf(stored, keys)
  const counter = (stored?.counter ?? 0n) + 1n
  const payload = canonicalJson({ ...content, counter: Number(counter), issuedUnixMs: now.getTime() })
  const renewed = {
    incarnation: content.incarnation,
    counter,
    contentHash,
    payload,
    signature: signText(stateSignedText(payload), newest.seed),
    signingKeyId: newest.id,
    issuedAt: now,
    acknowledgedAt: null,
  }
  await transaction.desiredState.upsert({
    where: keyOf(edge),
    create: { organizationId, edgeId, ...renewed },
    update: renewed,
    select: { edgeId: true },
  })
  return signedStateOf(renewed, keys)
}

function keyOf({ organizationId, edgeId }: AuthenticatedEdge) {
  return { organizationId_edgeId: { organizationId, edgeId } }
}

function hashOf(content: StateContent): string {
  return createHash('sha256').update(canonicalJson(content)).digest('hex')
}

/** A long poll that was open when its edge was revoked ends here. Throws `edge_revoked`. */
async function requireAccepted(db: DbTransaction, edge: AuthenticatedEdge): Promise<void> {
  const { organizationId, edgeId } = edge
  const row = await db.edge.findUnique({
    where: { organizationId_id: { organizationId, id: edgeId } },
    select: { revokedAt: true },
  })
  if (!row || row.revokedAt) throw new AppError('edge_revoked')
}

function signedStateOf(
  { incarnation, counter, payload, signature, signingKeyId }: StoredState,
  keys: SigningKeyStatement[],
): SignedState {
  return {
    pair: { incarnation, counter: Number(counter) },
    envelope: { payload, signature, keyId: signingKeyId, ...(keys.length > 0 ? { keys } : {}) },
  }
}
