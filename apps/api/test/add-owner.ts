import { randomUUID } from 'node:crypto'
import type { TestApi } from './test-api.ts'

/** One more owner, by this name. */
export async function addOwner(
  { db }: Pick<TestApi, 'db'>,
  organizationId: string,
  name: string,
): Promise<{ userId: string }> {
  const { id: userId } = await db.user.create({
    data: { name, email: `${randomUUID()}@example.test`, emailVerified: true },
    select: { id: true },
  })
  await db.membership.create({ data: { organizationId, userId } })
  await db.roleGrant.create({ data: { organizationId, userId, role: 'owner' } })
  return { userId }
}
