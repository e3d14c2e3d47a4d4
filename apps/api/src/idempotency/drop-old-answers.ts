import { inEachOrganization } from '../context/for-each-organization.ts'
import type { PlatformContext } from '../context/service-context.ts'
import { answersKeptMs } from './do-once.ts'

/** Forgets the answers that are no longer given again. */
export async function dropOldAnswers({ db, clock }: PlatformContext): Promise<void> {
  const before = new Date(clock().getTime() - answersKeptMs)
  await inEachOrganization({ db }, (transaction, organizationId) =>
    transaction.idempotentRequest.deleteMany({ where: { organizationId, createdAt: { lte: before } } }),
  )
}
