import type { DbTransaction } from '@bootfarm/db'
import type { BootReport } from '@bootfarm/proto/uplink'
import type { AuthenticatedEdge } from '../../context/service-context.ts'

/**
 * Marks the orders that boots say their devices have taken. Each once, only for the device that it was given to, and
 * also after it has expired: the report may come late.
 */
export async function takePowerOrders(
  transaction: DbTransaction,
  { organizationId, edgeId }: AuthenticatedEdge,
  { boots, now }: { boots: BootReport[]; now: Date },
): Promise<void> {
  const said = boots.flatMap(({ id, guest }) =>
    guest?.powerOrderId ? [{ boot_id: id, order_id: guest.powerOrderId }] : [],
  )
  if (said.length === 0) return
  await transaction.$executeRaw`
    update power_order set taken_at = ${now}, taken_boot_id = boot.id
    from jsonb_to_recordset(${JSON.stringify(said)}::jsonb) as said (boot_id uuid, order_id uuid)
    join boot_key on boot_key.organization_id = ${organizationId}::uuid and boot_key.boot_id = said.boot_id
    join boot on boot.organization_id = ${organizationId}::uuid and boot.id = boot_key.boot_id
      and boot.received_on = boot_key.received_on and boot.edge_id = ${edgeId}::uuid
    where power_order.organization_id = ${organizationId}::uuid and power_order.id = said.order_id
      and power_order.device_id = boot.device_id and power_order.taken_at is null`
}
