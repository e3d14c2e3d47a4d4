import { createHash, hkdfSync } from 'node:crypto'
import { inEachOrganization } from '../context/for-each-organization.ts'
import type { PlatformContext, ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { canonicalJson, type Json } from '../rules/canonical-json.ts'
import { openBytes, sealBytes } from '../secrets/sealed-bytes.ts'

const answersKeptMs = 86_400_000

/** A request that is done at most once. */
interface OnceRequest extends SealingKey {
  procedure: string
  input: unknown
}

type OnceContext = Pick<ServiceContext, 'db' | 'clock' | 'actor'>

/**
 * Claims the key in the request's own transaction: another request with it waits until this one ends, and finds what it
 * left.
 * @returns the answer of a request that went well before; null where this one is to be done now Throws
 *   `idempotency_key_reused` where the key came with something else.
 */
export async function beginOnce(
  { db, clock, actor }: OnceContext,
  request: OnceRequest,
): Promise<{ answer: unknown } | null> {
  const { organizationId, callerId, keyHash } = idOf(actor, request)
  const requestHash = hash(canonicalJson([request.procedure, (request.input ?? null) as Json]))
  const now = clock()
  const claimed = await db.$executeRaw`
    insert into idempotent_request as known (organization_id, caller_id, key_hash, request_hash, created_at)
    values (${organizationId}::uuid, ${callerId}::uuid, ${keyHash}, ${requestHash}, ${now})
    on conflict (organization_id, caller_id, key_hash) do update
    set request_hash = excluded.request_hash, created_at = excluded.created_at, answer = null
    where known.created_at <= ${new Date(now.getTime() - answersKeptMs)}`
  if (claimed > 0) return null
  const known = await db.idempotentRequest.findUnique({
    where: { organizationId_callerId_keyHash: { organizationId, callerId, keyHash } },
    select: { requestHash: true, answer: true },
  })
  if (known && known.requestHash !== requestHash) throw new AppError('idempotency_key_reused')
  if (!known?.answer) throw new AppError('unavailable', { internal: 'an idempotent request without an answer' })
  return { answer: JSON.parse(openAnswer(request, known.answer)) }
}

/** Keeps the answer; a failed request keeps nothing, because all of it is rolled back. */
export async function finishOnce({ db, actor }: OnceContext, request: OnceRequest, answer: unknown): Promise<void> {
  await db.idempotentRequest.update({
    where: { organizationId_callerId_keyHash: idOf(actor, request) },
    data: { answer: sealAnswer(request, JSON.stringify(answer ?? null)) },
  })
}

function idOf({ organizationId, apiKeyId, userId }: ServiceContext['actor'], { key }: OnceRequest) {
  const callerId = apiKeyId ?? userId
  if (!callerId) throw new AppError('internal', { internal: 'a caller without an id' })
  return { organizationId, callerId, keyHash: hash(key) }
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** Forgets the answers that are no longer given again. */
export async function dropOldAnswers({ db, clock }: PlatformContext): Promise<void> {
  const before = new Date(clock().getTime() - answersKeptMs)
  await inEachOrganization({ db }, (transaction, organizationId) =>
    transaction.idempotentRequest.deleteMany({ where: { organizationId, createdAt: { lte: before } } }),
  )
}

export interface SealingKey {
  /** The API's own secret. */
  secret: string
  /** The Idempotency-Key as sent: without it nobody can read the answer, not even with the database and the secret. */
  key: string
}

function sealAnswer({ secret, key }: SealingKey, answer: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(sealBytes(keyOf(secret, key), Buffer.from(answer)))
}

function openAnswer({ secret, key }: SealingKey, sealed: Uint8Array): string {
  return openBytes(keyOf(secret, key), sealed).toString('utf8')
}

function keyOf(secret: string, key: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret, key, 'bootfarm idempotent answer', 32))
}
