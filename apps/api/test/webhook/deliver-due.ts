import { type DeliveryContext, WebhookDeliveries } from '../../src/webhook/deliver-due.ts'

/** Sends what is due, as one process; throws what failed on this side. */
export async function deliverDue(context: DeliveryContext): Promise<void> {
  const errors: unknown[] = []
  const deliveries = new WebhookDeliveries(context, (error) => errors.push(error))
  deliveries.fill()
  await deliveries.idle()
  if (errors.length > 0) throw errors[0]
}
