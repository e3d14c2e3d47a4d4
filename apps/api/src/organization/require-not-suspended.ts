import type { DbOrTransaction } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'

/** Throws `organization_suspended`: such an organization may be read, not changed. */
export async function requireNotSuspended(db: DbOrTransaction, organizationId: string): Promise<void> {
  const organization = await db.organization.findUnique({
    where: { id: organizationId },
    select: { suspendedAt: true },
  })
  if (organization?.suspendedAt) throw new AppError('organization_suspended')
}
