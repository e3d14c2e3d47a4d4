import type { DbOrTransaction } from '../context/service-context.ts'

/** Who owns the organization, for mails to them. */
export async function ownersOf(
  db: DbOrTransaction,
  organizationId: string,
): Promise<{ name: string; email: string }[]> {
  const rows = await db.membership.findMany({
    where: { organizationId, grants: { some: { role: 'owner' } } },
    select: { user: { select: { name: true, email: true } } },
  })
  return rows.map(({ user }) => user)
}
