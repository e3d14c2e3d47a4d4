import type { DbOrTransaction } from '../context/service-context.ts'
import type { QuotaName } from '../rules/quotas.ts'

/**
 * Returns how many more of these the transaction's organization may have; infinite without a quota. Nobody else takes
 * them before the transaction ends. For automatic additions that leave out what does not fit: a refusal would also roll
 * back everything else.
 */
export async function roomFor(db: DbOrTransaction, quota: QuotaName): Promise<number> {
  const [row] = await db.$queryRaw<{ room: bigint | null }[]>`select own_room(${quota}) as room`
  return row?.room == null ? Number.POSITIVE_INFINITY : Number(row.room)
}
