import type { PlatformContext } from '../context/service-context.ts'

export async function isPlatformOperator({ db }: Pick<PlatformContext, 'db'>, userId: string): Promise<boolean> {
  const user = await db.user.findUnique({ where: { id: userId }, select: { isPlatformOperator: true } })
  return user?.isPlatformOperator ?? false
}
