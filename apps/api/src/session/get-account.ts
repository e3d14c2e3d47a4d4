import type { z } from 'zod'
import type { PersonContext } from '../context/service-context.ts'
import type { accountView } from './schema.ts'

/** What the account page shows of the person who asks. */
export async function getAccount({ db, person }: PersonContext): Promise<z.infer<typeof accountView>> {
  const { accounts, twoFactorEnabled, ...own } = await db.user.findUniqueOrThrow({
    where: { id: person.userId },
    select: {
      name: true,
      email: true,
      twoFactorEnabled: true,
      accounts: { where: { providerId: 'credential' }, select: { id: true } },
    },
  })
  return { ...own, hasTotp: twoFactorEnabled ?? false, hasPassword: accounts.length > 0 }
}
