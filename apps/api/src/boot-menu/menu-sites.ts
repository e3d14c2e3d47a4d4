import type { DbTransaction } from '@bootfarm/db'
import { notify } from '../context/notifications.ts'

/** Wakes the edges of all sites where collections or devices show the menu. */
export async function wakeSitesOf(
  transaction: DbTransaction,
  { organizationId, menuId }: { organizationId: string; menuId: string },
): Promise<void> {
  const using = { some: { organizationId, bootMenuId: menuId } }
  const sites = await transaction.site.findMany({
    where: { organizationId, OR: [{ collections: using }, { devices: using }] },
    select: { id: true },
  })
  for (const { id: siteId } of sites) await notify(transaction, { state: { siteId } })
}
