import { escapeLike } from '../context/keyset.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { scopesOf } from '../rules/actor.ts'
import { visibleMembers } from './list-members.ts'

interface FoundPerson {
  userId: string
  name: string
  email: string
}

/** People of whose name or address this is a part, among those whose roles the actor may see; by name. */
export async function findPeople(
  { db, actor }: ServiceContext,
  { text, take }: { text: string; take: number },
): Promise<FoundPerson[]> {
  if (scopesOf(actor, 'member.read').length === 0) return []
  const contains = { contains: escapeLike(text), mode: 'insensitive' as const }
  const rows = await db.membership.findMany({
    where: {
      organizationId: actor.organizationId,
      AND: [visibleMembers(actor), { user: { serviceOf: null, OR: [{ name: contains }, { email: contains }] } }],
    },
    orderBy: [{ user: { name: 'asc' } }, { userId: 'asc' }],
    take,
    select: { userId: true, user: { select: { name: true, email: true } } },
  })
  return rows.map(({ userId, user }) => ({ userId, name: user.name, email: user.email }))
}
