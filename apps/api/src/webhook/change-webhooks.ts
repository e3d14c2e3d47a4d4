import { randomUUIDv7 } from 'node:crypto'
import type { z } from 'zod'
import type { ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import { kept } from '../secrets/kept-secrets.ts'
import { getWebhook, webhookSelect, webhookViewOf } from './list-webhooks.ts'
import {
  type createWebhookInput,
  type updateWebhookInput,
  type WebhookView,
  type webhookInput,
  webhooksMax,
  type webhookWithSecret,
} from './schema.ts'
import { newWebhookSecret, shownSecret } from './sign-message.ts'
import { requireSendable, type TargetPolicy } from './target-guard.ts'

/** Signatures of the secret before go along for so long. */
const overlapMs = 86_400_000

interface WebhookContext extends ServiceContext {
  webhookTargets: TargetPolicy
}

/** Throws `invalid` for where no message may go, `conflict` for too many. */
export async function createWebhook(
  context: WebhookContext,
  { name, url, events }: z.output<typeof createWebhookInput>,
): Promise<z.infer<typeof webhookWithSecret>> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  requireSendable(url, context.webhookTargets)
  if ((await db.webhookEndpoint.count({ where: { organizationId } })) >= webhooksMax)
    throw new AppError('conflict', { public: `An organization can have at most ${webhooksMax} webhooks.` })
  const secret = newWebhookSecret()
  const id = randomUUIDv7()
  const row = await db.webhookEndpoint.create({
    data: {
      organizationId,
      id,
      name,
      url,
      events: [...new Set(events)],
      secret: kept({ kind: 'webhook', organizationId, id }, secret),
      createdAt: clock(),
    },
    select: webhookSelect,
  })
  const view = webhookViewOf(row, clock())
  await recordChange(context, { ...objectOf(view), before: null, after: auditOf(view) })
  return { ...view, secret: shownSecret(secret) }
}

/** Throws `not_found`, `invalid`; `conflict` if somebody else changed it meanwhile. */
export async function updateWebhook(
  context: WebhookContext,
  { webhookId, revision, name, url, events, enabled }: z.output<typeof updateWebhookInput>,
): Promise<WebhookView> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  requireSendable(url, context.webhookTargets)
  const before = await getWebhook(context, { webhookId })
  const isSwitchedOn = enabled && !before.enabled
  const [row] = await db.webhookEndpoint.updateManyAndReturn({
    where: { organizationId, id: webhookId, revision },
    data: {
      name,
      url,
      enabled,
      events: [...new Set(events)],
      revision: { increment: 1 },
      ...(isSwitchedOn ? { failingSince: null } : {}),
      ...(isSwitchedOn || (!enabled && before.enabled) ? { disabledReason: null } : {}),
    },
    select: webhookSelect,
  })
  if (!row)
    throw new AppError('conflict', {
      public: `Someone else changed this webhook in the meantime (now revision ${before.revision}). Load the latest version.`,
      extra: { revision: before.revision },
    })
  if (!enabled) await stopDeliveries(context, webhookId)
  const view = webhookViewOf(row, clock())
  await recordChange(context, { ...objectOf(view), before: auditOf(before), after: auditOf(view) })
  return view
}

/** Takes its deliveries along. Throws `not_found`. */
export async function removeWebhook(
  context: ServiceContext,
  { webhookId }: z.output<typeof webhookInput>,
): Promise<{ removed: true }> {
  const { db, actor } = context
  const before = await getWebhook(context, { webhookId })
  await db.webhookEndpoint.deleteMany({ where: { organizationId: actor.organizationId, id: webhookId } })
  await recordChange(context, { ...objectOf(before), before: auditOf(before), after: null })
  return { removed: true }
}

/** Messages are signed with both secrets for a day: the receiver has time to change over. Throws `not_found`. */
export async function rotateWebhookSecret(
  context: ServiceContext,
  { webhookId }: z.output<typeof webhookInput>,
): Promise<z.infer<typeof webhookWithSecret>> {
  const { db, clock, actor } = context
  const key = { organizationId: actor.organizationId, id: webhookId }
  const known = await db.webhookEndpoint.findUnique({
    where: { organizationId_id: key },
    select: { secret: true },
  })
  if (!known) throw new AppError('not_found')
  const secret = newWebhookSecret()
  const now = clock()
  const row = await db.webhookEndpoint.update({
    where: { organizationId_id: key },
    data: {
      secret: kept({ kind: 'webhook', ...key }, secret),
      previousSecret: known.secret,
      previousSecretUntil: new Date(now.getTime() + overlapMs),
      revision: { increment: 1 },
    },
    select: webhookSelect,
  })
  const view = webhookViewOf(row, now)
  await recordChange(context, {
    ...objectOf(view),
    before: { previousSecretUntil: null },
    after: { previousSecretUntil: view.previousSecretUntil },
  })
  return { ...view, secret: shownSecret(secret) }
}

async function stopDeliveries({ db, actor }: ServiceContext, endpointId: string): Promise<void> {
  await db.webhookDelivery.updateMany({
    where: { organizationId: actor.organizationId, endpointId, state: 'pending' },
    data: { state: 'failed' },
  })
}

function objectOf({ id, name }: WebhookView) {
  return { kind: 'webhook', id, name }
}

function auditOf({ name, url, events, enabled }: WebhookView) {
  return { name, url, events, enabled }
}
