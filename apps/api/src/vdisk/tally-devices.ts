import { Prisma } from '@bootfarm/db'
import { visibleDevicesSql } from '../access/visible.ts'
import type { DbOrTransaction, ServiceContext } from '../context/service-context.ts'
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

/** Edges of the farm's sites that the actor sees. */
export function seesEdgesOf(actor: Actor, farmId: string): (siteId: string) => boolean {
  return (siteId) => may(actor, 'edge.read', { farmId, siteId, collectionId: null })
}

interface TallyScope {
  vdiskId: string
  actor: Actor
}

/** Counts the devices that the actor may see, and names the first of them: their number hardly matters. */
export async function tallyDevices(
  db: DbOrTransaction,
  scope: TallyScope,
  resolved: ResolvedVersions,
): Promise<DeviceTallies> {
  return new DeviceTallies({ groups: await tallyBooting(db, scope), running: await tallyRunning(db, scope) }, resolved)
}

async function tallyBooting(db: DbOrTransaction, { vdiskId, actor }: TallyScope): Promise<Group[]> {
  const { organizationId } = actor
  const booting = Prisma.sql`device
    join collection on collection.organization_id = device.organization_id and collection.id = device.collection_id
    join vdisk on vdisk.organization_id = device.organization_id and vdisk.id = coalesce(device.vdisk_id, collection.vdisk_id)
    where device.organization_id = ${organizationId}::uuid and vdisk.id = ${vdiskId}::uuid and ${visibleDevicesSql(actor)}`
  const isWriter = Prisma.sql`coalesce(device.id = vdisk.maintenance_device_id, false)`
  const counts = await db.$queryRaw<{ device_type: DeviceType; is_writer: boolean; count: number }[]>`
    select device.device_type::text as device_type, ${isWriter} as is_writer, count(*)::integer as count
    from ${booting} group by 1, 2 order by 1, 2`
  const groups: Group[] = []
  for (const { device_type: deviceType, is_writer, count } of counts) {
    const ofGroup = Prisma.sql`device.device_type = ${deviceType}::"DeviceType" and ${isWriter} = ${is_writer}`
    const names = await firstNames(db, Prisma.sql`${booting} and ${ofGroup}`)
    groups.push({ deviceType, isWriter: is_writer, tally: { count, names } })
  }
  return groups
}

async function tallyRunning(db: DbOrTransaction, { vdiskId, actor }: TallyScope): Promise<Map<string, Tally>> {
  const allReads = await readsOf(db, actor.organizationId)
  const isOf = (reads: Reads) => Prisma.sql`${reads.vdisk} = ${vdiskId}::uuid and ${visibleDevicesSql(actor)}`
  const counts = await db.$queryRaw<{ version_id: string; count: number }[]>`
    select version_id::text, sum(count)::integer as count from (${Prisma.join(
      allReads.map(
        (reads) => Prisma.sql`select ${reads.version} as version_id, count(*) as count
          from ${runningSql(actor, reads, isOf(reads))} group by 1`,
      ),
      ' union all ',
    )}) as counted where version_id is not null group by 1`
  const tallies = new Map<string, Tally>()
  for (const { version_id: versionId, count } of counts) {
    const ofVersion = (reads: Reads) => Prisma.sql`${isOf(reads)} and ${reads.version} = ${versionId}::uuid`
    tallies.set(versionId, { count, names: await namesOfRunning(db, actor, { allReads, isOf: ofVersion }) })
  }
  return tallies
}

/**
 * Counts the devices whose last boot, as far as known, still reads a vDisk or version, and names the first of them. A
 * device that writes a version no longer runs once its edge hears nothing of it.
 * @param seen a condition on `device`
 */
export async function runningDevices(
  { db, actor }: Pick<ServiceContext, 'db' | 'actor'>,
  booted: { vdiskId: string } | { versionId: string },
  seen = Prisma.sql`true`,
): Promise<Tally> {
  const isOf = (reads: Reads) =>
    'vdiskId' in booted
      ? Prisma.sql`${reads.vdisk} = ${booted.vdiskId}::uuid and ${seen}`
      : Prisma.sql`${reads.version} = ${booted.versionId}::uuid and ${seen}`
  const allReads = await readsOf(db, actor.organizationId)
  let count = 0
  for (const reads of allReads) {
    const [row] = await db.$queryRaw<{ count: number }[]>`
      select count(*)::integer as count from ${runningSql(actor, reads, isOf(reads))}`
    count += row?.count ?? 0
  }
  return { count, names: count === 0 ? [] : await namesOfRunning(db, actor, { allReads, isOf }) }
}

async function namesOfRunning(
  db: DbOrTransaction,
  actor: Pick<Actor, 'organizationId'>,
  { allReads, isOf }: { allReads: Reads[]; isOf: (reads: Reads) => Prisma.Sql },
): Promise<string[]> {
  const names: string[] = []
  for (const reads of allReads) names.push(...(await firstNames(db, runningSql(actor, reads, isOf(reads)))))
  return names.sort().slice(0, namesMax)
}

/** Sorting the names of all devices would take longer than counting them. @param from of a statement */
async function firstNames(db: DbOrTransaction, from: Prisma.Sql): Promise<string[]> {
  const rows = await db.$queryRaw<{ name: string }[]>`
    select device.name from ${from} order by device.name, device.id limit ${namesMax}`
  return rows.map(({ name }) => name)
}

/** Where a statement finds what the last boot of a device reads. */
interface Reads {
  from: Prisma.Sql
  isKnown: Prisma.Sql
  vdisk: Prisma.Sql
  version: Prisma.Sql
}

/**
 * The devices' own columns say it, unless an API of the release before wrote their last boot. `isKnown` is no
 * comparison: PostgreSQL expects that of two columns to hold for hardly any device.
 */
const ownReads: Reads = {
  from: Prisma.sql`device`,
  isKnown: Prisma.sql`case when device.runs_boot_id = device.last_boot_id then true else false end`,
  vdisk: Prisma.sql`device.runs_vdisk_id`,
  version: Prisma.sql`device.runs_version_id`,
}
const bootReads: Reads = {
  from: Prisma.sql`device
    join boot_key on boot_key.organization_id = device.organization_id and boot_key.boot_id = device.last_boot_id
    join boot on boot.organization_id = boot_key.organization_id and boot.id = boot_key.boot_id
      and boot.received_on = boot_key.received_on`,
  isKnown: Prisma.sql`device.runs_boot_id is distinct from device.last_boot_id`,
  vdisk: Prisma.sql`boot.vdisk_id`,
  version: Prisma.sql`boot.version_id`,
}

/** Asks first whether there is any other device: joining boots is slow, also where no device needs it. */
async function readsOf(db: DbOrTransaction, organizationId: string): Promise<Reads[]> {
  const [row] = await db.$queryRaw<{ has_others: boolean }[]>`
    select exists (select from device where organization_id = ${organizationId}::uuid
      and runs_boot_id is distinct from last_boot_id) as has_others`
  return row?.has_others ? [ownReads, bootReads] : [ownReads]
}

/**
 * The `from` of a statement on devices that run: all but those whose start failed or that took a power order since. A
 * device that writes a version, and whose start is over, has left when every edge that has its writes reports that it
 * no longer hears the device.
 */
function runningSql(
  { organizationId }: Pick<Actor, 'organizationId'>,
  { from, isKnown, version }: Reads,
  isOf: Prisma.Sql,
): Prisma.Sql {
  return Prisma.sql`${from} where device.organization_id = ${organizationId}::uuid and ${isKnown} and ${isOf}
    and (device.last_boot_outcome is null or device.last_boot_outcome = 'ready') and not exists (
      select from power_order where power_order.organization_id = ${organizationId}::uuid
        and power_order.taken_boot_id = device.last_boot_id)
    and not (device.last_boot_outcome is not null and ${version} is not null and ${version} in (
      select layer.version_id from edge_version as layer
      where layer.organization_id = ${organizationId}::uuid and layer.is_layer group by 1
      having bool_and(layer.is_written is not distinct from false)))`
}
