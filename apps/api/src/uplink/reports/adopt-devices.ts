import type { DbTransaction } from '@bootfarm/db'
import type { BootReport } from '@bootfarm/proto/uplink'
import type { AuthenticatedEdge } from '../../context/service-context.ts'
import { adoptingDevicesMax } from '../../discovery/adoption-rule.ts'
import { adoptedChange } from '../../discovery/ignore-discovered.ts'
import { forgetDiscovered } from '../../discovery/rows.ts'
import { roomFor } from '../../organization/room-for.ts'
import { recordOfEdge } from '../enrol/record-of-edge.ts'

/**
 * Registers devices that booted at a site where unknown ones may boot, with their address as name and in the site's
 * oldest collection with a vDisk, so that they have a page and can be switched. Beyond the limit of the site or of the
 * organization, their boots have no device.
 * @returns whether discovered devices may have changed
 */
export async function adoptDevices(
  transaction: DbTransaction,
  edge: AuthenticatedEdge,
  { boots, now }: { boots: BootReport[]; now: Date },
): Promise<boolean> {
  const { organizationId, siteId } = edge
  const macs = [...new Set(boots.filter(({ generated }) => !generated).map(({ mac }) => mac))]
  const known = await transaction.device.findMany({
    where: { organizationId, siteId, mac: { in: macs } },
    select: { mac: true },
  })
  const knownMacs = new Set(known.map(({ mac }) => mac))
  const count = await transaction.device.count({ where: { organizationId, siteId } })
  const unregistered = macs.filter((mac) => !knownMacs.has(mac))
  if (unregistered.length === 0) return false
  const room = Math.min(adoptingDevicesMax - count, await roomFor(transaction, 'devices'))
  const unknown = unregistered.slice(0, Math.max(0, room))
  const collection = await transaction.collection.findFirst({
    where: { organizationId, siteId, vdiskId: { not: null } },
    orderBy: [{ createdAt: 'asc' }, { id: 'asc' }],
    select: { id: true },
  })
  if (unknown.length === 0 || !collection) return false
  const place = { organizationId, siteId, collectionId: collection.id, createdAt: now }
  const adopted = await transaction.device.createManyAndReturn({
    data: unknown.map((mac) => ({ ...place, mac, name: mac.replaceAll(':', '-') })),
    skipDuplicates: true,
    select: { id: true, name: true, mac: true, collectionId: true },
  })
  await recordOfEdge({ db: transaction, now }, edge, (at) =>
    adopted.map((device) => ({ action: 'device.adoptByBoot', ...adoptedChange(at, device) })),
  )
  await forgetDiscovered(transaction, { organizationId, siteId }, unknown)
  return true
}
