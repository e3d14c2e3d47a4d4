import { staleError, tellChanges } from '../access/require-current.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { may } from '../rules/actor.ts'
import { organizationPlace } from '../rules/place.ts'

/** What an account does by itself is kept under its member, too: none of it is a change of roles. */
const ofRoles = { not: { startsWith: 'account.' } }

/**
 * Locks the member until the transaction ends. Throws `conflict`, with who was quicker, where roles came or went since
 * the caller saw them; revision undefined: whatever they are now.
 */
export async function requireCurrentRoles(
  context: ServiceContext,
  { userId, revision }: { userId: string; revision: number | undefined },
): Promise<void> {
  const { db, actor } = context
  const [row] = await db.$queryRaw<{ revision: number }[]>`select revision from membership
    where organization_id = ${actor.organizationId}::uuid and user_id = ${userId}::uuid for no key update`
  if (!row) throw new AppError('not_found')
  if (revision === undefined || revision === row.revision) return
  const mayHear = may(actor, 'audit.read', organizationPlace)
  const which = { objectId: userId, action: ofRoles, count: row.revision - revision }
  throw staleError('member', mayHear ? await tellChanges(context, which) : '', row.revision)
}
