import { Prisma } from '@bootfarm/db'
import { visibleDevicesSql } from '../access/visible.ts'
import type { DbOrTransaction } from '../context/service-context.ts'
import { type Actor, may } from '../rules/actor.ts'
import { type ResolvedVersions, versionFor } from '../rules/device/version-access.ts'
import type { DeviceType } from '../rules/object-fields.ts'

/** The number of devices, and the first of them by name. */
export interface Tally {
  count: number
  names: string[]
}
const namesMax = 3

interface Group {
  deviceType: DeviceType
  isWriter: boolean
  tally: Tally
}

/** Returns which devices run which version of a vDisk, and which get which at the next boot. */
export class DeviceTallies {
  readonly groups: Group[]
  readonly running: Map<string, Tally>
  readonly #resolved: ResolvedVersions

  constructor({ groups, running }: { groups: Group[]; running: Map<string, Tally> }, resolved: ResolvedVersions) {
    this.groups = groups
    this.running = running
    this.#resolved = resolved
  }

  runningOf(versionId: string): Tally {
    return this.running.get(versionId) ?? { count: 0, names: [] }
  }

  nextOf(versionId: string): Tally {
    return sumOf(this.groups.filter((group) => versionOfGroup(this.#resolved, group)?.id === versionId))
  }
}

export function versionOfGroup(resolved: ResolvedVersions, { deviceType, isWriter }: Group) {
  const id = (isWriter ? resolved.writerDeviceId : null) ?? ''
  return versionFor(resolved, { id, deviceType })
}

export function sumOf(groups: Group[]): Tally {
  return {
    count: groups.reduce((sum, { tally }) => sum + tally.count, 0),
    names: groups
      .flatMap(({ tally }) => tally.names)
      .sort()
      .slice(0, namesMax),
  }
}

interface Row {
  key: string
  device_type: DeviceType | null
  is_writer: boolean
  count: number
  names: string[]
}

/** Edges of the farm's sites that the actor sees. */
export function seesEdgesOf(actor: Actor, farmId: string): (siteId: string) => boolean {
  return (siteId) => may(actor, 'edge.read', { farmId, siteId, collectionId: null })
}

/** Counts the devices that the actor may see, in two statements, however many there are. */
export async function tallyDevices(
  db: DbOrTransaction,
  { vdiskId, actor }: { vdiskId: string; actor: Actor },
  resolved: ResolvedVersions,
): Promise<DeviceTallies> {
  const { organizationId } = actor
  const booting = await db.$queryRaw<Row[]>`
    select '' as key, device.device_type::text as device_type, coalesce(device.id = vdisk.maintenance_device_id, false) as is_writer,
      count(*)::integer as count, (array_agg(device.name order by device.name))[1:${namesMax}::integer] as names
    from device join collection on collection.organization_id = device.organization_id and collection.id = device.collection_id
      join vdisk on vdisk.organization_id = device.organization_id and vdisk.id = coalesce(device.vdisk_id, collection.vdisk_id)
    where device.organization_id = ${organizationId}::uuid and vdisk.id = ${vdiskId}::uuid
      and ${visibleDevicesSql(actor)}
    group by 1, 2, 3 order by 2, 3`
  const running = await db.$queryRaw<Row[]>`
    select boot.version_id::text as key, null as device_type, false as is_writer, count(*)::integer as count,
      (array_agg(device.name order by device.name))[1:${namesMax}::integer] as names
    from device join boot_key on boot_key.organization_id = device.organization_id and boot_key.boot_id = device.last_boot_id
      join boot on boot.organization_id = boot_key.organization_id and boot.id = boot_key.boot_id
        and boot.received_on = boot_key.received_on
    where device.organization_id = ${organizationId}::uuid and boot.vdisk_id = ${vdiskId}::uuid and boot.version_id is not null
      and ${visibleDevicesSql(actor)}
      and (device.last_boot_outcome is null or device.last_boot_outcome = 'ready') and not exists (
        select from power_order where power_order.organization_id = device.organization_id
          and power_order.taken_boot_id = device.last_boot_id)
      and not ${hasLeft}
    group by 1`
  return new DeviceTallies(
    {
      groups: booting.map(({ device_type, is_writer, count, names }) => ({
        deviceType: device_type ?? 'production',
        isWriter: is_writer,
        tally: { count, names },
      })),
      running: new Map(running.map(({ key, count, names }) => [key, { count, names }])),
    },
    resolved,
  )
}

/**
 * A condition on `device` and its last `boot` in a statement: the device writes a version, its start is over, and every
 * edge that has its writes reports that it no longer hears the device.
 */
export const hasLeft = Prisma.sql`(device.last_boot_outcome is not null and (
  select bool_and(layer.is_written is not distinct from false) from edge_version as layer
  where layer.organization_id = device.organization_id and layer.version_id = boot.version_id and layer.is_layer) is true)`
