import type { PlatformContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'

/** Returns a sentence about the new state. Throws `not_found` for an address without an account. */
export async function setPlatformOperator(
  { db }: PlatformContext,
  { email, isOperator }: { email: string; isOperator: boolean },
): Promise<string> {
  const { count } = await db.user.updateMany({
    where: { email: email.toLowerCase() },
    data: { isPlatformOperator: isOperator },
  })
  if (count === 0)
    throw new AppError('not_found', {
      public: `${email} has no account.`,
      internal: `${email} has no account.`,
    })
  return isOperator
    ? `${email} now operates this installation: /platform`
    : `${email} no longer operates this installation.`
}

export async function isPlatformOperator({ db }: Pick<PlatformContext, 'db'>, userId: string): Promise<boolean> {
  const user = await db.user.findUnique({ where: { id: userId }, select: { isPlatformOperator: true } })
  return user?.isPlatformOperator ?? false
}
