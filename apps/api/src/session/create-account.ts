import { randomUUIDv7 } from 'node:crypto'
import type { DbOrTransaction } from '../context/service-context.ts'
import type { Clock } from '../rules/clock.ts'

interface NewAccount {
  name: string
  /** In lower case, and proven: by a mailed link, or by being the first. */
  email: string
  /** In better-auth's format. */
  passwordHash: string
}

/** A person who signs in with e-mail and password, as better-auth would make it. Returns the id. */
export async function createAccount(
  { db, clock }: { db: DbOrTransaction; clock: Clock },
  { name, email, passwordHash }: NewAccount,
): Promise<string> {
  const now = clock()
  const times = { createdAt: now, updatedAt: now }
  const id = randomUUIDv7()
  await db.user.create({ data: { id, name, email, emailVerified: true, ...times }, select: { id: true } })
  await db.account.create({
    data: { userId: id, accountId: id, providerId: 'credential', password: passwordHash, ...times },
    select: { id: true },
  })
  return id
}
