import { inOrganization } from '@bootfarm/db'
import { listOrganizationIds } from '../organization/list-organization-ids.ts'
import type { PlatformContext } from '../service-context.ts'
import { answersKeptMs } from './do-once.ts'

/** Forgets the answers that are no longer given again. */
export async function dropOldAnswers({ db, clock }: PlatformContext): Promise<void> {
  const before = new Date(clock().getTime() - answersKeptMs)
  for (const organizationId of await listOrganizationIds(db))
    await inOrganization(db, organizationId, (transaction) =>
      transaction.idempotentRequest.deleteMany({ where: { organizationId, createdAt: { lte: before } } }),
    )
}
