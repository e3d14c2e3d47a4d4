import type { DbOrTransaction } from './service-context.ts'

/** Within `work` the transaction sees what lies in the trash: everywhere else row-level security hides it. */
export async function withTrash<T>(db: DbOrTransaction, work: () => Promise<T>): Promise<T> {
  await db.$executeRaw`select set_config('bootfarm.trash', 'shown', true)`
  // Where it throws, the transaction ends, and the setting with it.
  const result = await work()
  await db.$executeRaw`select set_config('bootfarm.trash', '', true)`
  return result
}
