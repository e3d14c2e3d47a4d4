import { Prisma } from '@bootfarm/db'
import type { BootOutcome } from '@bootfarm/proto/boot-phases'
import { openBootsSql, visibleDevicesSql } from '../access/visible.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { stormDevicesMax } from './schema.ts'
import type { StormScope } from './storm-scope.ts'

export interface StormDevice {
  id: string
  name: string
  mac: string
  siteId: string
  siteName: string
  /** Its boot in the run; without a run, its last one, if that started since. */
  bootId: string | null
  /** A power-on is requested, and no boot has followed. */
  isQueued: boolean
  /** The device's state in the run; null without a run. */
  runState: string | null
  /** Otherwise it is a machine that nobody has registered, by its newest boot. */
  isRegistered: boolean
}

export interface StormBoot {
  id: string
  siteId: string
  edgeId: string
  startedAt: Date
  updatedAt: Date
  outcome: BootOutcome | null
  lastPhase: string | null
  totalUs: bigint
  bytesOut: bigint
  vdiskId: string | null
  versionId: string | null
  phases: { name: string; startUs: number; durationUs?: number | null }[]
}

/** The devices that the actor sees, and may see boots of; with more than a storm shows, those that booted last. */
export async function readStormDevices(
  { db, actor }: ServiceContext,
  { where, since, run }: StormScope,
  now: Date,
): Promise<{ devices: StormDevice[]; deviceCount: number }> {
  const own = Prisma.sql`organization_id = ${actor.organizationId}::uuid`
  const seen = Prisma.sql`device.organization_id = ${actor.organizationId}::uuid and ${where}
    and ${visibleDevicesSql(actor)} and ${visibleDevicesSql(actor, 'boot.read')}`
  const ofRun = run
    ? Prisma.sql`select device_id, state::text as state, boot_id from schedule_run_device where ${own} and run_id = ${run.id}::uuid`
    : Prisma.sql`select null::uuid as device_id, null::text as state, null::uuid as boot_id where false`
  const devices = await db.$queryRaw<StormDevice[]>`
    with queued as (
      select device_id, max(requested_at) as requested_at from power_on
      where ${own} and expires_at > ${now} group by device_id
    ), waiting as (
      select distinct device.device_id from schedule_run as run join schedule_run_device as device
        on device.organization_id = run.organization_id and device.run_id = run.id
      where run.${own} and run.closed_at is null and run.state in ('waiting', 'running') and device.state = 'waiting'
    ), of_run as (${ofRun}), shown as (
      select id, name, mac, site_id, last_boot_id, last_boot_started_at from device where ${seen}
      order by last_boot_started_at desc nulls last, id desc limit ${stormDevicesMax}
    )
    select shown.id::text, shown.name, shown.mac, shown.site_id::text as "siteId", site.name as "siteName", of_run.state as "runState",
      true as "isRegistered",
      (case when of_run.device_id is not null then of_run.boot_id
        when shown.last_boot_started_at >= ${since} then shown.last_boot_id end)::text as "bootId",
      (waiting.device_id is not null
        or queued.requested_at > coalesce(shown.last_boot_started_at, '-infinity')) is true as "isQueued"
    from shown join site on site.${own} and site.id = shown.site_id
      left join queued on queued.device_id = shown.id left join waiting on waiting.device_id = shown.id
      left join of_run on of_run.device_id = shown.id`
  if (devices.length < stormDevicesMax) return { devices, deviceCount: devices.length }
  const [all] = await db.$queryRaw<{ count: number }[]>`select count(*)::integer as count from device where ${seen}`
  return { devices, deviceCount: all?.count ?? devices.length }
}

/** A machine that restarts again and again does not hide the others. */
const bootsReadMax = 2 * stormDevicesMax

/** Machines that nobody has registered, as far as the actor may open their boots: at most `limit`, the newest first. */
export async function readUnregistered(
  { db, actor }: ServiceContext,
  { unregistered, since }: StormScope,
  limit: number,
): Promise<StormDevice[]> {
  if (!unregistered || limit <= 0) return []
  const own = Prisma.sql`organization_id = ${actor.organizationId}::uuid`
  return db.$queryRaw<StormDevice[]>`
    with newest as (
      select boot.id, boot.site_id, boot.mac, boot.started_at, site.name as site_name from boot
        join site on site.organization_id = boot.organization_id and site.id = boot.site_id
        left join device on device.organization_id = boot.organization_id and device.id = boot.device_id
      where boot.${own} and boot.device_id is null and boot.started_at >= ${since} and not boot.generated
        and boot.received_on >= (${since}::timestamptz at time zone 'UTC')::date
        and ${unregistered} and ${openBootsSql(actor)}
      order by boot.started_at desc, boot.id desc limit ${bootsReadMax}
    ), machine as (
      select distinct on (site_id, mac) id, site_id, mac, started_at, site_name from newest
      order by site_id, mac, started_at desc, id desc
    )
    select id::text, mac as name, mac, site_id::text as "siteId", site_name as "siteName", id::text as "bootId",
      false as "isQueued", null as "runState", false as "isRegistered"
    from machine where not exists (select from device where device.${own} and device.site_id = machine.site_id
      and device.mac = machine.mac)
    order by started_at desc limit ${limit}`
}

/**
 * Their boots by id. A boot at a site where its device is no longer is left out: who sees the device may not see it.
 * So is the history that the demo generates, which never happened.
 */
export async function readStormBoots(
  { db, actor }: ServiceContext,
  devices: StormDevice[],
): Promise<Map<string, StormBoot>> {
  const { organizationId } = actor
  const bootIds = devices.flatMap(({ bootId }) => bootId ?? [])
  if (bootIds.length === 0) return new Map()
  const keys = await db.$queryRaw<{ day: string }[]>`
    select distinct received_on::text as day from boot_key
    where organization_id = ${organizationId}::uuid and boot_id = any(${bootIds}::uuid[])`
  // The days are named: a statement without them would read every partition.
  const boots = await db.$queryRaw<StormBoot[]>`
    select id::text, site_id::text as "siteId", edge_id::text as "edgeId", started_at as "startedAt",
      updated_at as "updatedAt", outcome::text, last_phase as "lastPhase", total_us as "totalUs",
      bytes_out as "bytesOut", vdisk_id::text as "vdiskId", version_id::text as "versionId",
      case when outcome is null or outcome = 'ready' then phases else '[]'::jsonb end as phases
    from boot where organization_id = ${organizationId}::uuid and received_on = any(${keys.map(({ day }) => day)}::date[])
      and id = any(${bootIds}::uuid[]) and not generated`
  const siteOf = new Map(devices.map(({ bootId, siteId }) => [bootId, siteId]))
  return new Map(boots.filter(({ id, siteId }) => siteOf.get(id) === siteId).map((boot) => [boot.id, boot]))
}
