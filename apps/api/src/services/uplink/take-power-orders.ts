import type { DbTransaction } from '@bootfarm/db'
import type { BootReport } from '@bootfarm/proto/uplink'
import { notify } from '../notifications.ts'
import type { AuthenticatedEdge } from './authenticate-edge.ts'

/**
 * Marks the orders that boots say their devices have taken. Each once, only for the device that it was given to, and also
 * after it has expired: the report may come late. A taken one leaves the desired state, so the site's edges are woken.
 */
export async function takePowerOrders(
  transaction: DbTransaction,
  { organizationId, edgeId, siteId }: AuthenticatedEdge,
  { boots, now }: { boots: BootReport[]; now: Date },
): Promise<void> {
  const bootIds = boots.flatMap(({ id, guest }) => (guest?.powerOrderId ? [id] : []))
  if (bootIds.length === 0) return
  const taken = await transaction.$executeRaw`
    update power_order set taken_at = ${now}, taken_boot_id = boot.id
    from boot where boot.organization_id = ${organizationId}::uuid and boot.edge_id = ${edgeId}::uuid
      and boot.id = any(${bootIds}::uuid[]) and power_order.organization_id = boot.organization_id
      and power_order.id = (boot.guest->>'powerOrderId')::uuid and power_order.device_id = boot.device_id
      and power_order.taken_at is null`
  if (taken > 0) await notify(transaction, { state: { siteId } })
}
