import { AppError } from '../../errors/app-error.ts'
import type { DbOrTransaction } from '../service-context.ts'

/** Throws `forbidden` with a sentence of its own while the organization is suspended: it may be read, not changed. */
export async function requireNotSuspended(db: DbOrTransaction, organizationId: string): Promise<void> {
  const organization = await db.organization.findUnique({
    where: { id: organizationId },
    select: { suspendedAt: true },
  })
  if (!organization?.suspendedAt) return
  throw new AppError('forbidden', {
    public:
      'This organization is suspended: nothing can be changed until whoever runs this installation lifts that. Devices go on booting.',
  })
}
