import { createHash } from 'node:crypto'
import { type DbTransaction, Prisma } from '@bootfarm/db'
import { sealStateKeys } from '@bootfarm/proto/seal-state'
import type { DesiredState, SigningKeyStatement, StateEnvelope } from '@bootfarm/proto/uplink'
import { stateSignedText } from '@bootfarm/proto/uplink-signature'
import { type AuthenticatedEdge, lockRow, ownRow, type SystemContext } from '../../context/service-context.ts'
import { AppError } from '../../errors/app-error.ts'
import { readSigningKeys } from '../../organization/signing-keys.ts'
import { canonicalJson } from '../../rules/canonical-json.ts'
import type { StatePair } from './site-facts.ts'
import { type ReadState, readStateContent } from './state-content.ts'

interface SignedState {
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

/**
 * Returns the edge's desired state, signed: the stored one if its content is unchanged, otherwise a new one with the
 * next counter.
 * @param isExpected a change was announced: the content is read once, under the lock that a new state needs
 */
export async function currentState(
  context: SystemContext,
  edge: AuthenticatedEdge,
  isExpected: boolean,
): Promise<SignedState> {
  const { db, clock } = context
  if (isExpected) return db.$transaction((transaction) => renewState(transaction, edge, clock()))
  await requireAccepted(db, edge)
  const stored = await db.desiredState.findUnique({ where: keyOf(edge), select: storedSelect })
  const read = await readStateContent(db, edge, clock())
  const { keys, newest } = await readSigningKeys(db, edge)
  const isCurrent = stored?.contentHash === hashOf(read) && stored.signingKeyId === newest.id
  if (stored && isCurrent) return signedStateOf(stored, keys)
  return db.$transaction((transaction) => renewState(transaction, edge, clock()))
}

/**
 * Decides again under a lock on the edge's row, because two requests of an edge may reach two API processes. Throws
 * `edge_revoked`.
 */
async function renewState(transaction: DbTransaction, edge: AuthenticatedEdge, now: Date): Promise<SignedState> {
  const { organizationId, edgeId } = edge
  const row = await lockRow<{ revoked_at: Date | null }>(transaction, 'edge', {
    organizationId,
    id: edgeId,
    strength: 'no key update',
    columns: Prisma.sql`revoked_at`,
  })
  // Revoked while it waited: it must not get the site's new key.
  if (!row || row.revoked_at) throw new AppError('edge_revoked')
  const stored = await transaction.desiredState.findUnique({ where: keyOf(edge), select: storedSelect })
  const read = await readStateContent(transaction, edge, now)
  const contentHash = hashOf(read)
  const { keys, newest } = await readSigningKeys(transaction, edge)
  if (stored && stored.contentHash === contentHash && stored.signingKeyId === newest.id)
    return signedStateOf(stored, keys)
  const counter = (stored?.counter ?? 0n) + 1n
  const payload = canonicalJson({ ...sealedContent(read), counter: Number(counter), issuedUnixMs: now.getTime() })
  const signature = newest.sign(stateSignedText(payload))
  const { incarnation } = read.content
  await transaction.$executeRaw`
    insert into desired_state (organization_id, edge_id, incarnation, counter, content_hash, payload, signature, signing_key_id, issued_at)
    values (${organizationId}::uuid, ${edgeId}::uuid, ${incarnation}, ${counter}, ${contentHash}, ${payload}, ${signature},
      ${newest.id}::uuid, ${now})
    on conflict (organization_id, edge_id) do update set incarnation = excluded.incarnation, counter = excluded.counter,
      content_hash = excluded.content_hash, payload = excluded.payload, signature = excluded.signature,
      signing_key_id = excluded.signing_key_id, issued_at = excluded.issued_at, acknowledged_at = null`
  const renewed = { incarnation, counter, payload, signature, signingKeyId: newest.id }
  return signedStateOf(renewed, keys)
}

function keyOf({ organizationId, edgeId }: AuthenticatedEdge) {
  return { organizationId_edgeId: { organizationId, edgeId } }
}

/** Before it is sealed: every box is another text. Another key of the edge makes another state. */
function hashOf({ content, sealKey }: ReadState): string {
  return createHash('sha256')
    .update(canonicalJson(sealKey ? { ...content, sealKey } : content))
    .digest('hex')
}

/** Returns the content as the edge gets it: keys in a box that this edge alone opens, if it knows boxes. */
function sealedContent({ content, sealKey }: ReadState): Omit<DesiredState, 'counter' | 'issuedUnixMs'> {
  const { siteEdges } = content
  if (!sealKey || !siteEdges?.key || !siteEdges.ticketKeys) return content
  const { key: siteKey, ticketKeys, ...open } = siteEdges
  const sealed = sealStateKeys({ siteKey, ticketKeys }, { edgeId: content.edgeId, sealKey })
  return { ...content, siteEdges: open, sealed }
}

/** Ends a long poll that was open when its edge was revoked. Throws `edge_revoked`. */
async function requireAccepted(db: DbTransaction, edge: AuthenticatedEdge): Promise<void> {
  const { organizationId, edgeId } = edge
  const row = await db.edge.findUnique({
    where: ownRow({ organizationId }, edgeId),
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
