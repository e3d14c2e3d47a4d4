import type { DbTransaction } from '@bootfarm/db'
import { notify } from '../context/notifications.ts'
import type { Scope } from './schedule-targets.ts'

/** Wakes the edges of all sites that a schedule is for. */
export async function wakeScheduleSites(
  transaction: DbTransaction,
  { organizationId, farmId, siteId }: Scope,
): Promise<void> {
  if (siteId) return notify(transaction, { state: { siteId } })
  const sites = await transaction.site.findMany({ where: { organizationId, farmId }, select: { id: true } })
  for (const { id } of sites) await notify(transaction, { state: { siteId: id } })
}
