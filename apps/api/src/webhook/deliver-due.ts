import { inOrganization } from '@bootfarm/db'
import { lockRow, ownRow, type PlatformContext } from '../context/service-context.ts'
import type { Telemetry } from '../rules/telemetry.ts'
import { type EndedSpan, parseTraceparent, type Tracer, traceparentOf } from '../rules/tracer.ts'
import type { WebhookAttempt } from './schema.ts'
import { type Sent, sendMessage } from './send-message.ts'
import { signatureHeaders } from './sign-message.ts'
import type { TargetPolicy } from './target-guard.ts'

interface DeliveryContext extends PlatformContext {
  webhookTargets: TargetPolicy
  telemetry: Pick<Telemetry, 'deliveryTried'>
  /** Without it no traces are collected. */
  tracer?: Tracer | undefined
}

const atOnceMax = 16
/** If the process that took a message dies, the message is sent again after this time, with the same id. */
const leaseMs = 60_000
const minuteMs = 60_000
const hourMs = 60 * minuteMs
/** Before the next try. Ten tries within three days and a half, then it is given up. */
export const backOffMs = [5_000, 5 * minuteMs, 30 * minuteMs, ...[2, 5, 10, 14, 20, 24].map((hours) => hours * hourMs)]
const attemptsMax = backOffMs.length + 1
const attemptsKeptMax = 10
/** An endpoint that takes nothing for so long is switched off. */
export const failingMsMax = 4 * 24 * hourMs

/** Sends due messages of all organizations. Several processes do this in parallel; one of them takes each message. */
export async function deliverDue(context: DeliveryContext, onError: (error: unknown) => void): Promise<void> {
  const { db, clock } = context
  for (;;) {
    const due = await db.$queryRaw<{ organization_id: string; delivery_id: string }[]>`
      select organization_id::text, delivery_id::text from due_webhook_deliveries(${clock()}, ${atOnceMax})`
    const taken = await Promise.allSettled(
      due.map((row) => deliver(context, { organizationId: row.organization_id, id: row.delivery_id })),
    )
    // A message that failed here, not at its receiver, delays no other: it is due again when its lease ends.
    for (const result of taken) if (result.status === 'rejected') onError(result.reason)
    if (!taken.some((result) => result.status === 'fulfilled' && result.value)) return
  }
}

interface DeliveryKey {
  organizationId: string
  id: string
}

/** @returns whether it was taken: another process may have been sooner */
async function deliver(context: DeliveryContext, key: DeliveryKey): Promise<boolean> {
  const { db, clock, webhookTargets, telemetry, tracer } = context
  const taken = await inOrganization(db, key.organizationId, (transaction) => take(transaction, key, clock()))
  if (!taken) return false
  const { endpoint, event } = taken
  const at = clock()
  const body = JSON.stringify(event.payload)
  const begin = performance.now()
  // Below what the event came of, perhaps in another process.
  const span = tracer?.start('client', parseTraceparent(event.traceparent))
  const sent = await sendMessage({
    url: endpoint.url,
    headers: {
      ...signatureHeaders({ id: event.id, at, body }, secretsOf(endpoint, at)),
      ...(span ? { traceparent: traceparentOf(span) } : {}),
    },
    body,
    policy: webhookTargets,
  })
  const attempt = { at: at.toISOString(), durationMs: Math.round(performance.now() - begin), ...sent }
  telemetry.deliveryTried(attempt.error === null)
  span?.end(deliverySpan(taken.attemptCount, sent))
  await inOrganization(db, key.organizationId, (transaction) => note(transaction, { ...taken, key, attempt, at }))
  return true
}

/** Its destination and answer belong to the tenant. */
function deliverySpan(attempt: number, { status, error }: Sent): EndedSpan {
  return {
    name: 'POST webhook',
    attributes: {
      'http.request.method': 'POST',
      'bootfarm.webhook.attempt': attempt,
      ...(status === null ? {} : { 'http.response.status_code': status }),
    },
    error: error === null ? null : status === null ? 'no response' : String(status),
  }
}

type Transaction = Parameters<Parameters<typeof inOrganization>[2]>[0]
type Taken = NonNullable<Awaited<ReturnType<typeof take>>>

async function take(db: Transaction, { organizationId, id }: DeliveryKey, now: Date) {
  const { count } = await db.webhookDelivery.updateMany({
    where: { organizationId, id, state: 'pending', dueAt: { lte: now } },
    data: { dueAt: new Date(now.getTime() + leaseMs), attemptCount: { increment: 1 } },
  })
  if (count === 0) return null
  return db.webhookDelivery.findUniqueOrThrow({
    where: ownRow({ organizationId }, id),
    select: {
      attemptCount: true,
      attempts: true,
      endpointId: true,
      event: { select: { id: true, payload: true, traceparent: true } },
      endpoint: {
        select: {
          url: true,
          secret: true,
          previousSecret: true,
          previousSecretUntil: true,
          failingSince: true,
        },
      },
    },
  })
}

function secretsOf({ secret, previousSecret, previousSecretUntil }: Taken['endpoint'], at: Date): Uint8Array[] {
  const isOverlap = previousSecret && previousSecretUntil && previousSecretUntil > at
  return isOverlap ? [secret, previousSecret] : [secret]
}

interface Noted extends Taken {
  key: DeliveryKey
  attempt: WebhookAttempt
  at: Date
}

async function note(db: Transaction, { key, attempt, at, ...taken }: Noted): Promise<void> {
  const { organizationId, id } = key
  // First of all, so that two messages of one endpoint do not wait for each other.
  await lockRow(db, 'webhook_endpoint', { organizationId, id: taken.endpointId, strength: 'update' })
  const isTaken = attempt.error === null
  // Stopped by 410 Gone of RFC 9110.
  const isGivenUp = taken.attemptCount >= attemptsMax || attempt.status === 410
  const waitMs = backOffMs[taken.attemptCount - 1] ?? 0
  const attempts = [...(taken.attempts as WebhookAttempt[]), attempt].slice(-attemptsKeptMax)
  await db.webhookDelivery.updateMany({
    where: { organizationId, id },
    data: {
      attempts,
      state: isTaken ? 'delivered' : isGivenUp ? 'failed' : 'pending',
      dueAt: new Date(at.getTime() + waitMs),
    },
  })
  const endpoint = { organizationId, id: taken.endpointId }
  if (isTaken) await db.webhookEndpoint.updateMany({ where: endpoint, data: { failingSince: null } })
  else await noteFailure(db, { endpoint, attempt, at, since: taken.endpoint.failingSince ?? at })
}

interface Failure {
  endpoint: DeliveryKey
  attempt: WebhookAttempt
  at: Date
  since: Date
}

async function noteFailure(db: Transaction, { endpoint, attempt, at, since }: Failure): Promise<void> {
  const { organizationId, id } = endpoint
  const isOver = at.getTime() - since.getTime() >= failingMsMax
  const reason =
    attempt.status === 410
      ? 'The receiver answered 410: it accepts no more messages.'
      : isOver
        ? `No message was delivered since ${since.toISOString()}. The last error: ${attempt.error}`
        : null
  await db.webhookEndpoint.updateMany({
    where: { organizationId, id },
    data: {
      failingSince: since,
      ...(reason ? { enabled: false, disabledReason: reason, revision: { increment: 1 } } : {}),
    },
  })
  if (reason)
    await db.webhookDelivery.updateMany({
      where: { organizationId, endpointId: id, state: 'pending' },
      data: { state: 'failed' },
    })
}
