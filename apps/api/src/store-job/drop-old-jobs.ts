import { inEachOrganization } from '../context/for-each-organization.ts'
import type { PlatformContext } from '../context/service-context.ts'
import { storeJobsKeptDays } from './schema.ts'

const dayMs = 86_400_000

/** What edges' stores were asked for, and has ended long ago. */
export async function dropOldStoreJobs({ db, clock }: PlatformContext): Promise<void> {
  const before = new Date(clock().getTime() - storeJobsKeptDays * dayMs)
  await inEachOrganization({ db }, (transaction, organizationId) =>
    transaction.storeJob.deleteMany({ where: { organizationId, endedAt: { lt: before } } }),
  )
}
