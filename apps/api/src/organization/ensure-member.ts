import type { DbOrTransaction } from '../context/service-context.ts'
import type { Role } from '../rules/permissions.ts'

interface NewMember {
  organizationId: string
  userId: string
  /** In the whole organization. */
  role: Role
}

/** Makes the person a member with this role; who is a member keeps the roles there are. */
export async function ensureMember(db: DbOrTransaction, { organizationId, userId, role }: NewMember): Promise<void> {
  const member = await db.membership.findUnique({
    where: { organizationId_userId: { organizationId, userId } },
    select: { userId: true },
  })
  if (member) return
  await db.membership.create({ data: { organizationId, userId } })
  await db.roleGrant.create({ data: { organizationId, userId, role }, select: { id: true } })
}
