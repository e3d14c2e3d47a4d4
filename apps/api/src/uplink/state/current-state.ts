import { createHash } from 'node:crypto'
import { type DbTransaction, Prisma } from '@bootfarm/db'
import { sealStateKeys } from '@bootfarm/proto/seal-state'
import type { DesiredState, SigningKeyStatement, StateEnvelope } from '@bootfarm/proto/uplink'
import { stateSignedText } from '@bootfarm/proto/uplink-signature'
import { type AuthenticatedEdge, type DbOrTransaction, lockRow } from '../../context/service-context.ts'
import { AppError } from '../../errors/app-error.ts'
import { readSigningKeys } from '../../organization/signing-keys.ts'
import { canonicalMembers, joinMembers } from '../../rules/canonical-json.ts'
import type { StatePair } from './site-facts.ts'
import { type ReadState, readStateContent } from './state-content.ts'

/** A change that raised no version, since somebody had disabled triggers, reaches the edges within twice this. */
const readAgainMs = 10 * 60_000

export interface SignedState {
  pair: StatePair
  envelope: StateEnvelope
  /** The payload that this one has just replaced; null: it was there already, or is the first. */
  replaced: string | null
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

/** What one statement tells of an edge's desired state. */
export interface StateLook {
  /** Of the last state that was made for the edge; null before the first. */
  pair: StatePair | null
  isAcknowledged: boolean
  /** Nothing that the state is made of has changed since it was read. */
  isCurrent: boolean
}

/**
 * Compares the version of the edge's site with the one in which its state was read: docs/decisions/0049. Reads nothing
 * else. Throws `edge_revoked`, which ends a long poll that was open when its edge was revoked.
 */
export async function lookAtState(db: DbOrTransaction, edge: AuthenticatedEdge, now: Date): Promise<StateLook> {
  const { organizationId, edgeId, siteId } = edge
  const [row] = await db.$queryRaw<LookRow[]>`
    select edge.revoked_at, state.incarnation, state.counter, state.acknowledged_at is not null as is_acknowledged,
      coalesce(state.site_id = ${siteId}::uuid and state.read_again_at > ${now} and state.site_version = (
        select sum(raised) from state_version where site_id = ${siteId}::uuid), false) as is_current
    from edge left join desired_state as state on state.organization_id = edge.organization_id and state.edge_id = edge.id
    where edge.organization_id = ${organizationId}::uuid and edge.id = ${edgeId}::uuid`
  if (!row || row.revoked_at) throw new AppError('edge_revoked')
  const pair = row.counter === null ? null : { incarnation: row.incarnation, counter: Number(row.counter) }
  return { pair, isAcknowledged: row.is_acknowledged, isCurrent: row.is_current }
}

interface LookRow {
  revoked_at: Date | null
  incarnation: number
  counter: bigint | null
  is_acknowledged: boolean
  is_current: boolean
}

/** Returns the state that `lookAtState` found current, or one that replaced it meanwhile. */
export async function storedState(db: DbOrTransaction, edge: AuthenticatedEdge): Promise<SignedState> {
  const stored = await db.desiredState.findUniqueOrThrow({ where: keyOf(edge), select: storedSelect })
  const { keys } = await readSigningKeys(db, edge)
  return signedStateOf(stored, { keys, replaced: null })
}

/**
 * Reads what the edge's desired state is made of, and returns the state, signed: the stored one if its content is the
 * same, otherwise a new one with the next counter. It holds a lock on the edge's row, because two requests of an edge
 * may reach two API processes. Throws `edge_revoked`.
 */
export async function renewState(
  transaction: DbTransaction,
  edge: AuthenticatedEdge,
  { now, dashboardUrl }: { now: Date; dashboardUrl: string | null },
): Promise<SignedState> {
  const { organizationId, edgeId, siteId } = edge
  const row = await lockRow<{ revoked_at: Date | null }>(transaction, 'edge', {
    organizationId,
    id: edgeId,
    strength: 'no key update',
    columns: Prisma.sql`revoked_at`,
  })
  // Revoked while it waited: it must not get the site's new key.
  if (!row || row.revoked_at) throw new AppError('edge_revoked')
  const stored = await transaction.desiredState.findUnique({ where: keyOf(edge), select: storedSelect })
  // Before the content: what commits while that is read has raised the version again.
  const siteVersion = await readSiteVersion(transaction, siteId)
  const read = await readStateContent(transaction, edge, now)
  if (dashboardUrl !== null) read.content.dashboardUrl = dashboardUrl
  // The text of thousands of devices is made once, for the hash and for the payload.
  const members = canonicalMembers(read.content)
  const contentHash = hashOf(members, read.sealKey)
  const { keys, newest } = await readSigningKeys(transaction, edge)
  const readAgainAt = readAgainAfter(read, now)
  if (stored && stored.contentHash === contentHash && stored.signingKeyId === newest.id) {
    await transaction.$executeRaw`
      update desired_state set site_id = ${siteId}::uuid, site_version = ${siteVersion}, read_again_at = ${readAgainAt}
      where organization_id = ${organizationId}::uuid and edge_id = ${edgeId}::uuid`
    return signedStateOf(stored, { keys, replaced: null })
  }
  const counter = (stored?.counter ?? 0n) + 1n
  const signed = { ...sealedMembers(read), counter: Number(counter), issuedUnixMs: now.getTime() }
  const payload = joinMembers(new Map([...members, ...canonicalMembers(signed)]))
  const signature = newest.sign(stateSignedText(payload))
  const { incarnation } = read.content
  await transaction.$executeRaw`
    insert into desired_state (organization_id, edge_id, incarnation, counter, content_hash, payload, signature, signing_key_id, issued_at,
      site_id, site_version, read_again_at)
    values (${organizationId}::uuid, ${edgeId}::uuid, ${incarnation}, ${counter}, ${contentHash}, ${payload}, ${signature},
      ${newest.id}::uuid, ${now}, ${siteId}::uuid, ${siteVersion}, ${readAgainAt})
    on conflict (organization_id, edge_id) do update set incarnation = excluded.incarnation, counter = excluded.counter,
      content_hash = excluded.content_hash, payload = excluded.payload, signature = excluded.signature,
      signing_key_id = excluded.signing_key_id, issued_at = excluded.issued_at, acknowledged_at = null,
      site_id = excluded.site_id, site_version = excluded.site_version, read_again_at = excluded.read_again_at`
  const renewed = { incarnation, counter, payload, signature, signingKeyId: newest.id }
  return signedStateOf(renewed, { keys, replaced: stored?.payload ?? null })
}

function keyOf({ organizationId, edgeId }: AuthenticatedEdge) {
  return { organizationId_edgeId: { organizationId, edgeId } }
}

/** Before it is sealed: every box is another text. Another key of the edge makes another state. */
function hashOf(members: Map<string, string>, sealKey: string | null): string {
  const hashed = sealKey ? new Map([...members, ...canonicalMembers({ sealKey })]) : members
  return createHash('sha256').update(joinMembers(hashed)).digest('hex')
}

/** Returns what replaces the content's keys: a box that this edge alone opens, if it knows boxes. */
function sealedMembers({ content, sealKey }: ReadState): Pick<DesiredState, 'siteEdges' | 'sealed'> {
  const { siteEdges } = content
  if (!sealKey || !siteEdges?.key || !siteEdges.ticketKeys) return {}
  const { key: siteKey, ticketKeys, ...open } = siteEdges
  return { siteEdges: open, sealed: sealStateKeys({ siteKey, ticketKeys }, { edgeId: content.edgeId, sealKey }) }
}

/** Null if the site has gone: no state is current then. */
async function readSiteVersion(db: DbOrTransaction, siteId: string): Promise<bigint | null> {
  const [row] = await db.$queryRaw<{ version: bigint | null }[]>`
    select sum(raised)::bigint as version from state_version where site_id = ${siteId}::uuid`
  return row?.version ?? null
}

/**
 * Returns when the state may change although nobody changes it, or when it is read again to be sure: at a random
 * moment, so that edges which got theirs together do not come back together.
 */
function readAgainAfter({ changesAt }: ReadState, now: Date): Date {
  const sureMs = now.getTime() + readAgainMs * (1 + Math.random())
  return new Date(Math.min(changesAt?.getTime() ?? sureMs, sureMs))
}

function signedStateOf(
  { incarnation, counter, payload, signature, signingKeyId }: StoredState,
  { keys, replaced }: { keys: SigningKeyStatement[]; replaced: string | null },
): SignedState {
  return {
    pair: { incarnation, counter: Number(counter) },
    envelope: { payload, signature, keyId: signingKeyId, ...(keys.length > 0 ? { keys } : {}) },
    replaced,
  }
}
