import { findBoot, waitOfRow } from '../boot/public.ts'
import { type DbOrTransaction, ownRow } from '../context/service-context.ts'
import { deviceStateOf } from '../rules/device/device-state.ts'

/** How long the order stays in the desired state, as for orders of people. */
const orderValidMs = 60_000

interface Asked {
  organizationId: string
  deviceId: string
  now: Date
}

/**
 * Makes a device boot, for a program that has decided so and keeps a record: one that runs is ordered to restart,
 * another is woken. `booting`: it is in the middle of a boot, and nothing was ordered; `gone`: there is no such device,
 * or it is disabled.
 */
export async function askToBoot(
  db: DbOrTransaction,
  { organizationId, deviceId, now }: Asked,
): Promise<'restart' | 'wake' | 'booting' | 'gone'> {
  const actor = { organizationId }
  const device = await db.device.findUnique({
    where: ownRow(actor, deviceId),
    select: { enabled: true, lastBootId: true },
  })
  if (!device?.enabled) return 'gone'
  const boot = device.lastBootId ? await findBoot({ db, actor }, device.lastBootId) : null
  const state = boot ? deviceStateOf(boot, now).state : 'unknown'
  if (state === 'booting') return 'booting'
  const order = { organizationId, deviceId, requestedAt: now, expiresAt: new Date(now.getTime() + orderValidMs) }
  if (state === 'running' || (boot && waitOfRow(boot, now)?.reason === 'lost_disk')) {
    await db.powerOrder.create({ data: { ...order, order: 'restart' }, select: { id: true } })
    return 'restart'
  }
  await db.powerOn.create({ data: order, select: { id: true } })
  return 'wake'
}
