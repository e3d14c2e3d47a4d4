import type { DbTransaction } from '@bootfarm/db'

/** The rows that a transaction has changed and live pages are to show. */
export interface BootChanges {
  /** Boots that were written, or whose device waits. */
  bootIds: string[]
  /** Boots that were withdrawn. */
  withdrawnIds: string[]
}

/**
 * Gives the changes the next numbers of their organization, as the transaction's last statement: its feed stays locked
 * until the commit, so that numbers become visible in their order, and all edges of the organization wait for that.
 */
export async function numberChanges(
  transaction: DbTransaction,
  organizationId: string,
  { bootIds, withdrawnIds }: BootChanges,
): Promise<void> {
  const ids = [...new Set([...bootIds, ...withdrawnIds])]
  if (ids.length === 0) return
  await transaction.$executeRaw`
    with feed as (
      update boot_feed set last_change = last_change + ${ids.length}
      where organization_id = ${organizationId}::uuid returning last_change - ${ids.length} as before
    ), numbered as (
      select id, (select before from feed) + place as change
      from unnest(${ids}::uuid[]) with ordinality as row (id, place)
    ), withdrawn as (
      update withdrawn_boot set change = numbered.change from numbered
      where organization_id = ${organizationId}::uuid and boot_id = numbered.id
        and boot_id = any(${withdrawnIds}::uuid[])
    )
    update boot_key set change = numbered.change from numbered
    where organization_id = ${organizationId}::uuid and boot_id = numbered.id`
}
