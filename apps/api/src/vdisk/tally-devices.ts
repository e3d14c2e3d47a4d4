import { Prisma } from '@bootfarm/db'
import { deviceTypes } from '@bootfarm/proto/uplink'
import { seesAllDevices, visibleDevicesSql } from '../access/visible.ts'
import { type DbOrTransaction, ownRow } from '../context/service-context.ts'
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

/** Each type apart, and the device that writes the maintenance version after the others of its type. */
async function tallyBooting(db: DbOrTransaction, scope: TallyScope): Promise<Group[]> {
  const { vdiskId, actor } = scope
  const { organizationId } = actor
  const counts = await countBooting(db, scope)
  const booting = Prisma.sql`device join collection on collection.organization_id = device.organization_id
      and collection.id = device.collection_id
    where device.organization_id = ${organizationId}::uuid and ${visibleDevicesSql(actor)}
      and coalesce(device.vdisk_id, collection.vdisk_id) = ${vdiskId}::uuid`
  const vdisk = await db.vdisk.findUnique({ where: ownRow(actor, vdiskId), select: { maintenanceDeviceId: true } })
  const writerId = vdisk?.maintenanceDeviceId ?? null
  const [writer] =
    writerId === null
      ? []
      : await db.$queryRaw<{ name: string; device_type: DeviceType }[]>`
          select device.name, device.device_type::text as device_type from ${booting} and device.id = ${writerId}::uuid`
  const groups: Group[] = []
  for (const deviceType of deviceTypes) {
    const isWritersType = writer?.device_type === deviceType
    const count = (counts.get(deviceType) ?? 0) - (isWritersType ? 1 : 0)
    const ofGroup = Prisma.sql`device.device_type = ${deviceType}::"DeviceType" and device.id is distinct from ${writerId}::uuid`
    if (count > 0) {
      const names = await firstNames(db, Prisma.sql`${booting} and ${ofGroup}`)
      groups.push({ deviceType, isWriter: false, tally: { count, names } })
    }
    if (isWritersType) groups.push({ deviceType, isWriter: true, tally: { count: 1, names: [writer.name] } })
  }
  return groups
}

/**
 * Counts by type. A vDisk that most collections boot has all devices without one of their own, but for those in other
 * collections: the index `device_of_kind` counts all without looking at the collection of each.
 */
async function countBooting(db: DbOrTransaction, { vdiskId, actor }: TallyScope): Promise<Map<DeviceType, number>> {
  const { organizationId } = actor
  const visible = Prisma.sql`device.organization_id = ${organizationId}::uuid and ${visibleDevicesSql(actor)}`
  const inCollections = (which: Prisma.Sql) =>
    countByType(
      db,
      Prisma.sql`device join collection on collection.organization_id = ${organizationId}::uuid
          and collection.id = device.collection_id
        where ${visible} and device.vdisk_id is null and ${which}`,
    )
  const counts = await countByType(db, Prisma.sql`device where ${visible} and device.vdisk_id = ${vdiskId}::uuid`)
  if (seesAllDevices(actor) && (await isOfMost(db, { organizationId, vdiskId }))) {
    const all = await countByType(db, Prisma.sql`device where ${visible} and device.vdisk_id is null`)
    const isOther = Prisma.sql`(collection.vdisk_id is null or collection.vdisk_id <> ${vdiskId}::uuid)`
    addCounts(counts, all, 1)
    addCounts(counts, await inCollections(isOther), -1)
  } else addCounts(counts, await inCollections(Prisma.sql`collection.vdisk_id = ${vdiskId}::uuid`), 1)
  return counts
}

/** @param from of a statement on devices */
async function countByType(db: DbOrTransaction, from: Prisma.Sql): Promise<Map<DeviceType, number>> {
  const rows = await db.$queryRaw<{ type: DeviceType; count: number }[]>`
    select device.device_type::text as type, count(*)::integer as count from ${from} group by device.device_type`
  return new Map(rows.map(({ type, count }) => [type, count]))
}

function addCounts(sums: Map<DeviceType, number>, counts: Map<DeviceType, number>, sign: 1 | -1): void {
  for (const [type, count] of counts) sums.set(type, (sums.get(type) ?? 0) + sign * count)
}

/** Returns whether more than half of the collections boot a vDisk. */
async function isOfMost(
  db: DbOrTransaction,
  { organizationId, vdiskId }: { organizationId: string; vdiskId: string },
): Promise<boolean> {
  const [row] = await db.$queryRaw<{ is_most: boolean }[]>`
    select 2 * count(*) filter (where vdisk_id = ${vdiskId}::uuid) > count(*) as is_most
    from collection where organization_id = ${organizationId}::uuid`
  return row?.is_most ?? false
}

async function tallyRunning(db: DbOrTransaction, { vdiskId, actor }: TallyScope): Promise<Map<string, Tally>> {
  const allReads = await readsOf(db, actor.organizationId)
  const isOf = (reads: Reads) => Prisma.sql`${reads.vdisk} = ${vdiskId}::uuid and ${visibleDevicesSql(actor)}`
  const counts = new Map<string, number>()
  for (const reads of allReads) await countRunning(db, { actor, reads, isOf: isOf(reads) }, counts)
  const tallies = new Map<string, Tally>()
  for (const [versionId, count] of counts) {
    if (count <= 0) continue
    const ofVersion = (reads: Reads) => Prisma.sql`${isOf(reads)} and ${reads.version} = ${versionId}::uuid`
    tallies.set(versionId, { count, names: await namesOfRunning(db, actor, { allReads, isOf: ofVersion }) })
  }
  return tallies
}

/**
 * Adds by version all that have started, less those that do not run any more: the index `device_running_version` alone
 * counts the first, and the others are few. In one statement PostgreSQL would start processes for the two.
 */
async function countRunning(
  db: DbOrTransaction,
  { actor, reads, isOf }: { actor: Actor; reads: Reads; isOf: Prisma.Sql },
  counts: Map<string, number>,
): Promise<void> {
  const started = startedSql(actor, reads, isOf)
  const startedCounts = await db.$queryRaw<VersionCount[]>`
    select ${reads.version}::text as id, count(*)::integer as count from ${started} group by ${reads.version}`
  const idAndVersion = Prisma.sql`select device.id, ${reads.version} as version_id from ${started}`
  const goneCounts = await db.$queryRaw<VersionCount[]>`
    select version_id::text as id, -count(*)::integer as count from (
      ${idAndVersion} and (device.id, device.last_boot_id) in (select device_id, taken_boot_id from power_order
        where organization_id = ${actor.organizationId}::uuid and taken_boot_id is not null)
      union ${idAndVersion} and ${hasLeft(actor, reads)}) as gone group by version_id`
  for (const { id, count } of [...startedCounts, ...goneCounts])
    if (id !== null) counts.set(id, (counts.get(id) ?? 0) + count)
}

interface VersionCount {
  id: string | null
  count: number
}

/**
 * Counts the devices whose last boot, as far as known, still reads a vDisk or version, and names the first of them. A
 * device that writes a version no longer runs once its edge hears nothing of it.
 * @param seen a condition on `device`
 */
export async function runningDevices(
  { db, actor }: { db: DbOrTransaction; actor: OfOrganization },
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
  actor: OfOrganization,
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
 * comparison: PostgreSQL expects that of two columns to hold for hardly any device. The index `device_running` has it
 * literally, and `hasStarted`.
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

const hasStarted = Prisma.sql`(device.last_boot_outcome is null or device.last_boot_outcome = 'ready')`

/** Asks first whether there is any other device: joining boots is slow, also where no device needs it. */
async function readsOf(db: DbOrTransaction, organizationId: string): Promise<Reads[]> {
  // In the order of the index that has only these: PostgreSQL expects nearly all devices to be among them.
  const others = await db.$queryRaw<{ id: string }[]>`
    select id::text from device where organization_id = ${organizationId}::uuid
      and runs_boot_id is distinct from last_boot_id order by last_boot_id limit 1`
  return others.length > 0 ? [ownReads, bootReads] : [ownReads]
}

type OfOrganization = Pick<Actor, 'organizationId'>

/** The `from` of a statement on devices whose last boot has not failed. */
function startedSql({ organizationId }: OfOrganization, { from, isKnown }: Reads, isOf: Prisma.Sql): Prisma.Sql {
  return Prisma.sql`${from} where device.organization_id = ${organizationId}::uuid and ${isKnown} and ${isOf}
    and ${hasStarted}`
}

/**
 * A device that writes a version, and whose start is over, has left when every edge that has its writes reports that it
 * no longer hears the device.
 */
function hasLeft({ organizationId }: OfOrganization, { version }: Reads): Prisma.Sql {
  return Prisma.sql`device.last_boot_outcome is not null and ${version} is not null and ${version} in (
    select layer.version_id from edge_version as layer
    where layer.organization_id = ${organizationId}::uuid and layer.is_layer group by 1
    having bool_and(layer.is_written is not distinct from false))`
}

/** The same on devices that run: those that took a power order since, or have left, do not. */
function runningSql(organization: OfOrganization, reads: Reads, isOf: Prisma.Sql): Prisma.Sql {
  return Prisma.sql`${startedSql(organization, reads, isOf)} and not exists (
      select from power_order where power_order.organization_id = ${organization.organizationId}::uuid
        and power_order.taken_boot_id = device.last_boot_id)
    and not (${hasLeft(organization, reads)})`
}
