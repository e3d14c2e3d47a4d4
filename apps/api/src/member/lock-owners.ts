import { lockOrganization } from '../context/lock-row.ts'
import type { DbOrTransaction } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'

/** Whoever changes who owns the organization waits here for others that do, so that two cannot each leave the other as the last. */
export async function lockOwners(db: DbOrTransaction, organizationId: string): Promise<void> {
  await lockOrganization(db, organizationId, 'update')
}

/** After `lockOwners` and the change. Throws `conflict` where no owner is left, which takes the change back. */
export async function requireOwner(db: DbOrTransaction, organizationId: string): Promise<void> {
  const owner = await db.roleGrant.findFirst({
    where: { organizationId, role: 'owner', farmId: null, siteId: null, collectionId: null },
    select: { id: true },
  })
  if (owner) return
  throw new AppError('conflict', {
    public: 'An organization needs an owner. Make another member an owner first, or delete the organization.',
  })
}
