import { inOrganization } from '@bootfarm/db'
import { lockRow, ownRow, type PlatformContext } from '../context/service-context.ts'
import type { Telemetry } from '../rules/telemetry.ts'
import { type EndedSpan, parseTraceparent, type Tracer, traceparentOf } from '../rules/tracer.ts'
import { opened } from '../secrets/kept-secrets.ts'
import type { WebhookAttempt } from './schema.ts'
import { type Sent, sendMessage } from './send-message.ts'
import { signatureHeaders } from './sign-message.ts'
import type { TargetPolicy } from './target-guard.ts'

export interface DeliveryContext extends PlatformContext {
  webhookTargets: TargetPolicy
  telemetry: Pick<Telemetry, 'deliveryTried'>
  /** Without it no traces are collected. */
  tracer?: Tracer | undefined
}

/** Messages that one process sends at once. */
const atOnceMax = 128
const atOncePerOrganizationMax = 4
/** Two, so that a message that its receiver answers late holds up no other of that endpoint. */
const atOncePerEndpointMax = 2
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

interface DueMessage {
  organization_id: string
  endpoint_id: string
  delivery_id: string
}

/**
 * Sends due messages of all organizations. Each endpoint and each organization has a few slots, and a slot that becomes
 * free is filled at once: receivers that do not answer delay their own organization's messages alone. Several processes
 * do this in parallel, each with its own slots; one of them takes each message.
 */
export class WebhookDeliveries {
  readonly #context: DeliveryContext
  readonly #onError: (error: unknown) => void
  /** How many messages of an organization, or of an endpoint, are being sent. */
  readonly #counts = new Map<string, number>()
  readonly #running = new Set<Promise<void>>()
  #looking: Promise<void> | undefined
  #isLookDue = false
  #isStopped = false

  constructor(context: DeliveryContext, onError: (error: unknown) => void) {
    this.#context = context
    this.#onError = onError
  }

  /** Fills free slots with due messages. Looks once more after a look that is in progress. */
  fill(): void {
    this.#isLookDue = true
    this.#looking ??= this.#look()
      .catch(this.#onError)
      .finally(() => {
        this.#looking = undefined
      })
  }

  /** Resolves when no message is being sent, and none was due at the last look. */
  async idle(): Promise<void> {
    while (this.#looking || this.#running.size > 0) await (this.#looking ?? Promise.race(this.#running))
  }

  /** Takes no further messages, and waits for those that are being sent. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await this.idle()
  }

  async #look(): Promise<void> {
    const { db, clock } = this.#context
    while (this.#isLookDue && !this.#isStopped) {
      this.#isLookDue = false
      const free = atOnceMax - this.#running.size
      if (free <= 0) return
      const due = await db.$queryRaw<DueMessage[]>`
        select organization_id::text, endpoint_id::text, delivery_id::text
        from next_webhook_deliveries(${clock()}, ${free}, ${atOncePerEndpointMax}, ${atOncePerOrganizationMax}, ${this.#busy()}::uuid[])`
      for (const message of due) this.#start(message)
    }
  }

  #busy(): string[] {
    return [...this.#counts].flatMap(([key, count]) => {
      const [kind, id = ''] = key.split(' ')
      return count >= (kind === 'endpoint' ? atOncePerEndpointMax : atOncePerOrganizationMax) ? [id] : []
    })
  }

  #start({ organization_id: organizationId, endpoint_id: endpointId, delivery_id: id }: DueMessage): void {
    const [ofOrganization, ofEndpoint] = [`organization ${organizationId}`, `endpoint ${endpointId}`]
    if ((this.#counts.get(ofOrganization) ?? 0) >= atOncePerOrganizationMax) return
    if ((this.#counts.get(ofEndpoint) ?? 0) >= atOncePerEndpointMax) return
    this.#count([ofOrganization, ofEndpoint], 1)
    const sending = deliver(this.#context, { organizationId, id })
      // A message that failed here, not at its receiver, delays no other: it is due again when its lease ends.
      .then(() => true)
      .catch((error: unknown) => {
        this.#onError(error)
        return false
      })
      .then((isDone) => {
        this.#count([ofOrganization, ofEndpoint], -1)
        this.#running.delete(sending)
        if (isDone) this.fill()
      })
    this.#running.add(sending)
  }

  #count(keys: string[], change: 1 | -1): void {
    for (const key of keys) {
      const count = (this.#counts.get(key) ?? 0) + change
      if (count === 0) this.#counts.delete(key)
      else this.#counts.set(key, count)
    }
  }
}

interface DeliveryKey {
  organizationId: string
  id: string
}

/** Does nothing where another process was sooner. */
async function deliver(context: DeliveryContext, key: DeliveryKey): Promise<void> {
  const { db, clock, webhookTargets, telemetry, tracer } = context
  const taken = await inOrganization(db, key.organizationId, (transaction) => take(transaction, key, clock()))
  if (!taken) return
  const { endpoint, event } = taken
  const at = clock()
  const body = JSON.stringify(event.payload)
  const begin = performance.now()
  // Below what the event came of, perhaps in another process.
  const span = tracer?.start('client', parseTraceparent(event.traceparent))
  const sent = await sendMessage({
    url: endpoint.url,
    headers: {
      ...signatureHeaders({ id: event.id, at, body }, secretsOf(taken, key.organizationId, at)),
      ...(span ? { traceparent: traceparentOf(span) } : {}),
    },
    body,
    policy: webhookTargets,
  })
  const attempt = { at: at.toISOString(), durationMs: Math.round(performance.now() - begin), ...sent }
  telemetry.deliveryTried(attempt.error === null)
  span?.end(deliverySpan(taken.attemptCount, sent))
  await inOrganization(db, key.organizationId, (transaction) => note(transaction, { ...taken, key, attempt, at }))
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

function secretsOf({ endpoint, endpointId }: Taken, organizationId: string, at: Date): Uint8Array[] {
  const { secret, previousSecret, previousSecretUntil } = endpoint
  const isOverlap = previousSecret && previousSecretUntil && previousSecretUntil > at
  const secrets = isOverlap ? [secret, previousSecret] : [secret]
  return secrets.map((one) => opened({ kind: 'webhook', organizationId, id: endpointId }, one))
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
