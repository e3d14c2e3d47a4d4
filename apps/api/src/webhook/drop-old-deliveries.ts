import { inEachOrganization } from '../context/for-each-organization.ts'
import type { PlatformContext } from '../context/service-context.ts'

export const deliveriesKeptDays = 30
const dayMs = 86_400_000

/** Forgets events and their deliveries; what is still on its way is younger than this. */
export async function dropOldDeliveries({ db, clock }: PlatformContext): Promise<void> {
  const before = new Date(clock().getTime() - deliveriesKeptDays * dayMs)
  await inEachOrganization({ db }, (transaction, organizationId) =>
    transaction.webhookEvent.deleteMany({ where: { organizationId, createdAt: { lt: before } } }),
  )
}
