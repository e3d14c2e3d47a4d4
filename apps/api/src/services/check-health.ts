import type { SystemContext } from './service-context.ts'

/** Throws while the database does not answer. */
export async function checkHealth({ db }: SystemContext): Promise<void> {
  await db.$queryRaw`select 1`
}
