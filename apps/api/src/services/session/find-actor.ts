import type { Actor } from '../../domain/actor.ts'
import type { SystemContext } from '../service-context.ts'

interface SignedInUser {
  id: string
  name: string
  email: string
}

/** The user in the organization joined first; null where there is no membership. */
export async function findActor({ db }: SystemContext, user: SignedInUser): Promise<Actor | null> {
  const membership = await db.membership.findFirst({
    where: { userId: user.id },
    orderBy: [{ createdAt: 'asc' }, { organizationId: 'asc' }],
    select: { role: true, organization: { select: { id: true, name: true } } },
  })
  if (!membership) return null
  return {
    userId: user.id,
    userName: user.name,
    userEmail: user.email,
    organizationId: membership.organization.id,
    organizationName: membership.organization.name,
    role: membership.role,
  }
}
