import { inOrganization } from '@bootfarm/db'
import { listOrganizationIds } from '../organization/list-organization-ids.ts'
import type { PlatformContext } from '../service-context.ts'

export const deliveriesKeptDays = 30
const dayMs = 86_400_000

/** Forgets events and their deliveries; what is still on its way is younger than this. */
export async function dropOldDeliveries({ db, clock }: PlatformContext): Promise<void> {
  const before = new Date(clock().getTime() - deliveriesKeptDays * dayMs)
  for (const organizationId of await listOrganizationIds(db))
    await inOrganization(db, organizationId, (transaction) =>
      transaction.webhookEvent.deleteMany({ where: { organizationId, createdAt: { lt: before } } }),
    )
}
