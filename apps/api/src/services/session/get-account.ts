import type { z } from 'zod'
import type { accountView } from '../../domain/session-view.ts'
import type { PersonContext } from '../service-context.ts'

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
