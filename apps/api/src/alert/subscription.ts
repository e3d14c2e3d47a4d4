import type { z } from 'zod'
import type { ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordDifference } from '../events/record-change.ts'
import type { SubscriptionView, subscribeInput } from './schema.ts'

type Subscription = SubscriptionView['subscription']

/** Throws `forbidden` for a program. */
export async function getSubscription(context: ServiceContext): Promise<SubscriptionView> {
  const { db, actor } = context
  const row = await db.alertSubscription.findUnique({
    where: { organizationId_userId: memberOf(context) },
    select: { quietFrom: true, quietTo: true, timeZone: true },
  })
  return { email: actor.userEmail, subscription: row && subscriptionOf(row) }
}

/** Chooses whether the caller gets alerts by mail: those from now on. Throws `forbidden` for a program. */
export async function subscribe(
  context: ServiceContext,
  { subscription }: z.output<typeof subscribeInput>,
): Promise<SubscriptionView> {
  const { db, clock, actor } = context
  const member = memberOf(context)
  const before = await getSubscription(context)
  if (subscription === null) await db.alertSubscription.deleteMany({ where: member })
  else {
    const { quietHours, timeZone } = subscription
    const fields = { quietFrom: quietHours?.from ?? null, quietTo: quietHours?.to ?? null, timeZone }
    await db.alertSubscription.upsert({
      where: { organizationId_userId: member },
      create: { ...member, ...fields, mailedUntil: clock() },
      update: fields,
    })
  }
  const change = { before: fieldsOf(before.subscription), after: fieldsOf(subscription) }
  const object = { kind: 'alert_subscription', id: member.userId, name: actor.userName }
  await recordDifference(context, Object.assign(object, change))
  return getSubscription(context)
}

function memberOf({ actor }: ServiceContext): { organizationId: string; userId: string } {
  if (actor.kind !== 'person' || actor.userId === null)
    throw new AppError('forbidden', { public: 'Only people get mails. Use a webhook for alert.opened.' })
  return { organizationId: actor.organizationId, userId: actor.userId }
}

function subscriptionOf(row: { quietFrom: string | null; quietTo: string | null; timeZone: string }): Subscription {
  const { quietFrom: from, quietTo: to, timeZone } = row
  return { quietHours: from === null || to === null ? null : { from, to }, timeZone }
}

function fieldsOf(subscription: Subscription) {
  return { mails: subscription !== null, quietHours: subscription?.quietHours, timeZone: subscription?.timeZone }
}
