import type { PlatformContext } from './service-context.ts'

/** Throws while the database does not answer. */
export async function checkHealth({ db }: PlatformContext): Promise<void> {
  await db.$queryRaw`select 1`
}
