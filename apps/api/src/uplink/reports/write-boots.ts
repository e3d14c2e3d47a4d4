import { type DbTransaction, Prisma } from '@bootfarm/db'
import type { BootReport } from '@bootfarm/proto/uplink'
import type { AuthenticatedEdge } from '../../context/service-context.ts'
import { type RollupBoot, RollupChanges } from '../../rules/boot-rollup.ts'
import type { EndedBoot } from '../../rules/telemetry.ts'
import { dayText, utcDay } from '../../rules/utc-day.ts'
import { daysWithDetails } from './boot-partitions.ts'
import { type BootWrite, bootColumns, bootRowOf } from './boot-write.ts'
import { type KnownBoot, readKnownBoots } from './known-boots.ts'
import { writeRollups } from './write-rollups.ts'

/**
 * Writes boots and the sums over them. A row is replaced only by a higher revision from the edge that made it, and the
 * device's last boot follows. Start, arrival and day stay those of the first report. The partitions of the days exist
 * already.
 * @returns the boots that were news, and those that ended by it
 */
export async function writeBoots(
  transaction: DbTransaction,
  edge: AuthenticatedEdge,
  { boots, now }: { boots: BootReport[]; now: Date },
): Promise<{ writtenIds: string[]; endedBoots: EndedBoot[] }> {
  const { organizationId } = edge
  const newest = newestRevisions(boots)
  const known = await readKnownBoots(
    transaction,
    organizationId,
    newest.map(({ id }) => id),
  )
  const today = utcDay(now)
  const writes = newest
    .filter((boot) => isNews(boot, known.get(boot.id), edge))
    .map((boot): BootWrite => {
      const before = known.get(boot.id) ?? null
      return { boot, before, edgeId: edge.edgeId, receivedOn: before?.receivedOn ?? today, now }
    })
  if (writes.length === 0) return { writtenIds: [], endedBoots: [] }
  const detailDays = await keptDetailDays(transaction, writes, today)
  const rows = writes.map((write) => bootRowOf(write, detailDays))
  await writeRows(transaction, edge, { rows, now })
  const changes = new RollupChanges(now)
  for (const [index, { before }] of writes.entries()) {
    if (before) changes.count(before, -1)
    const row = rows[index]
    if (row) changes.count(rollupBootOf(row, before, edge), 1)
  }
  await writeRollups(transaction, organizationId, changes)
  return {
    writtenIds: writes.map(({ boot }) => boot.id),
    endedBoots: writes.flatMap((write) => endedBoot(write, edge)),
  }
}

/** Returns the boot if this report is the first with its outcome: once for each boot. */
function endedBoot({ boot, before, now }: BootWrite, edge: AuthenticatedEdge): EndedBoot[] {
  if (!boot.outcome || (before && before.outcome !== null)) return []
  const startedAt = before?.startedAt ?? bootColumns(boot, now).startedAt
  const { organizationId, edgeId } = edge
  return [{ organizationId, edgeId, siteId: before?.siteId ?? edge.siteId, startedAt, boot }]
}

/** A boot that is known without a row is past its retention. */
function isNews(boot: BootReport, known: KnownBoot | null | undefined, edge: AuthenticatedEdge): boolean {
  if (known === undefined) return true
  if (known === null || known.revision >= boot.revision) return false
  // Its device failed over to another edge of the site: revisions grow from edge to edge.
  return known.edgeId === edge.edgeId || (boot.handOver !== undefined && known.siteId === edge.siteId)
}

type BootRow = ReturnType<typeof bootRowOf>

function rollupBootOf(row: BootRow, before: KnownBoot | null, edge: AuthenticatedEdge): RollupBoot {
  return {
    siteId: before?.siteId ?? edge.siteId,
    startedAt: before?.startedAt ?? new Date(row.started_at),
    outcome: row.outcome,
    totalUs: row.total_us,
    generated: row.generated,
    phases: row.phases,
  }
}

async function keptDetailDays(transaction: DbTransaction, writes: BootWrite[], today: Date): Promise<Set<string>> {
  const days = new Set(writes.map(({ receivedOn }) => dayText(receivedOn)))
  days.delete(dayText(today))
  const kept = days.size === 0 ? new Set<string>() : await daysWithDetails(transaction, [...days])
  return kept.add(dayText(today))
}

/**
 * Keeps the highest revision of each boot, with the newest report of its device, because one statement cannot write a
 * row twice.
 */
function newestRevisions(boots: BootReport[]): BootReport[] {
  const byId = new Map<string, BootReport>()
  for (const boot of boots.toSorted((a, b) => a.revision - b.revision)) {
    const known = byId.get(boot.id)
    if (known?.revision === boot.revision) continue
    const guest = boot.guest ?? known?.guest
    byId.set(boot.id, guest ? { ...boot, guest } : boot)
  }
  return [...byId.values()]
}

/** The day's row is the organization's, and a conflict locks it: it is left alone unless it changes. */
async function writeRows(
  transaction: DbTransaction,
  { organizationId, edgeId, siteId }: AuthenticatedEdge,
  { rows, now }: { rows: BootRow[]; now: Date },
): Promise<void> {
  await transaction.$executeRaw`
    with reported as (
      select * from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as row (${reportedColumns})
    ), keys as (
      insert into boot_key (organization_id, boot_id, received_on, change)
      select ${organizationId}::uuid, id, received_on, 0 from reported where is_new
    ), days as (
      insert into boot_day (organization_id, received_on, earliest_started_at)
      select ${organizationId}::uuid, received_on, min(started_at) from reported group by received_on
      having not exists (select from boot_day as known where known.organization_id = ${organizationId}::uuid
        and known.received_on = reported.received_on and known.earliest_started_at <= min(reported.started_at))
      on conflict (organization_id, received_on) do update set earliest_started_at = excluded.earliest_started_at
      where excluded.earliest_started_at < boot_day.earliest_started_at
    ), details as (
      insert into boot_detail (organization_id, boot_id, received_on, phases, facts, guest)
      select ${organizationId}::uuid, id, received_on, detail_phases, facts, guest from reported where has_detail
      on conflict (organization_id, boot_id, received_on) do update set
        phases = case when excluded.facts ? 'handOver' then (
            select jsonb_agg(coalesce(earlier, said)) from jsonb_array_elements(excluded.phases) as said
            left join jsonb_array_elements(boot_detail.phases) as earlier
              on earlier->>'name' = said->>'name' and earlier ? 'durationUs')
          else excluded.phases end,
        facts = case when excluded.facts ? 'handOver' then boot_detail.facts || excluded.facts else excluded.facts end,
        guest = coalesce(excluded.guest, boot_detail.guest)
    ), written as (
      insert into boot (organization_id, edge_id, site_id, received_at, updated_at, device_id, storage, edge_release, hour, ${machine}, id, received_on, mac, revision, started_at, outcome, failed_phase, failed_cause, failed_text, last_phase,
        total_us, duration_us, bytes_out, retries, simulated, generated, vdisk_id, version_id, menu_entry, phases,
        write_cache_used_bytes, write_cache_size_bytes, write_cache_held, silent_since, lost)
      select ${organizationId}::uuid, ${edgeId}::uuid, ${siteId}::uuid, ${now}, ${now}, known.id,
        reporter.storage, reporter.release, extract(hour from started_at at time zone 'UTC'), ${machine},
        reported.id, received_on, reported.mac, revision, started_at, outcome, failed_phase, failed_cause, failed_text,
        last_phase, total_us, duration_us, bytes_out, retries, simulated, generated, vdisk_id, version_id, menu_entry,
        phases, write_cache_used_bytes, write_cache_size_bytes, write_cache_held, silent_since, lost
      from reported cross join (${reporterOf({ organizationId, edgeId })}) as reporter left join (select id, mac from device where organization_id = ${organizationId}::uuid
        and site_id = ${siteId}::uuid) as known on known.mac = reported.mac
      on conflict (organization_id, id, received_on) do update set ${newerBoot}
      returning id, device_id, started_at, outcome, total_us, write_cache_used_bytes, write_cache_size_bytes,
        vdisk_id, version_id, write_cache_held ->> 'class' in ('edge_persistent', 'private') as has_layer, write_cache_held ->> 'class' as class
    ), newest as (
      select distinct on (device_id) * from written where device_id is not null
      order by device_id, started_at desc, id desc
    )
    update device set last_boot_id = newest.id, last_boot_started_at = newest.started_at,
      last_boot_outcome = newest.outcome, last_boot_total_us = newest.total_us, runs_boot_id = newest.id,
      runs_vdisk_id = newest.vdisk_id, runs_version_id = newest.version_id,
      last_boot_lost = coalesce((select is_lost from reported where reported.id = newest.id), false),
      last_boot_write_cache_percent = floor(least(newest.write_cache_used_bytes, newest.write_cache_size_bytes)
        * 100.0 / newest.write_cache_size_bytes)::integer,
      ${reportedAddresses}, layer_class = case when has_layer then newest.class::"WriteCacheClass" else layer_class end,
      layer_edge_id = case when has_layer then ${edgeId}::uuid else layer_edge_id end,
      layer_version_id = case when has_layer then newest.version_id else layer_version_id end,
      layer_bytes = case when has_layer then newest.write_cache_used_bytes else layer_bytes end
    from newest where device.organization_id = ${organizationId}::uuid and device.id = newest.device_id
      and (device.last_boot_started_at is null or device.last_boot_started_at <= newest.started_at)`
}

/** What people search a device by, besides its name: a report that tells nothing of it changes nothing. */
const reportedAddresses = Prisma.sql`
  last_boot_ip = coalesce((select facts->>'ip' from reported where reported.id = newest.id), last_boot_ip),
  last_boot_machine_id = coalesce((select (facts->>'machineId')::uuid from reported where reported.id = newest.id),
    last_boot_machine_id)`

/** Columns of what the device is, and of how its edge read for it. */
const machine = Prisma.sql`client_arch, is_cold, processors, memory_mib, network_card, hardware_model, segment, network`

/**
 * The edge's release, and the kind of storage of its store by its last heartbeat: edges that report boots also report
 * themselves.
 */
function reporterOf({ organizationId, edgeId }: { organizationId: string; edgeId: string }): Prisma.Sql {
  return Prisma.sql`select heartbeat -> 'machine' -> 'storeMedium' ->> 'kind' as storage, agent_version as release
    from edge where organization_id = ${organizationId}::uuid and id = ${edgeId}::uuid`
}

/** The columns that a report with a higher revision replaces. */
const newerBoot = Prisma.sql`
  updated_at = excluded.updated_at, revision = excluded.revision,
  outcome = excluded.outcome, failed_phase = excluded.failed_phase, failed_cause = excluded.failed_cause,
  failed_text = excluded.failed_text, last_phase = excluded.last_phase, total_us = excluded.total_us,
  duration_us = excluded.duration_us, bytes_out = excluded.bytes_out, retries = excluded.retries, vdisk_id = excluded.vdisk_id,
  version_id = excluded.version_id, menu_entry = excluded.menu_entry, phases = excluded.phases,
  simulated = excluded.simulated, generated = excluded.generated,
  write_cache_used_bytes = excluded.write_cache_used_bytes, write_cache_size_bytes = excluded.write_cache_size_bytes,
  write_cache_held = excluded.write_cache_held, silent_since = excluded.silent_since,
  lost = excluded.lost, client_arch = excluded.client_arch, is_cold = excluded.is_cold,
  processors = coalesce(excluded.processors, boot.processors),
  memory_mib = coalesce(excluded.memory_mib, boot.memory_mib),
  network_card = coalesce(excluded.network_card, boot.network_card),
  hardware_model = coalesce(excluded.hardware_model, boot.hardware_model),
  segment = coalesce(excluded.segment, boot.segment),
  edge_release = coalesce(boot.edge_release, excluded.edge_release),
  storage = coalesce(excluded.storage, boot.storage),
  network = coalesce(excluded.network, boot.network)`

const reportedColumns = Prisma.sql`
  id uuid, received_on date, mac text, is_new boolean, revision bigint, started_at timestamptz,
  outcome "BootOutcome", failed_phase text, failed_cause text, failed_text text, last_phase text, total_us bigint,
  duration_us bigint, bytes_out bigint, retries bigint, simulated boolean, generated boolean, vdisk_id uuid,
  version_id uuid, menu_entry text, phases jsonb, write_cache_used_bytes bigint, write_cache_size_bytes bigint,
  write_cache_held jsonb, silent_since timestamptz, lost jsonb, is_lost boolean, client_arch integer, is_cold boolean,
  processors integer, memory_mib integer, network_card text, hardware_model text, segment text, network jsonb,
  has_detail boolean, detail_phases jsonb, facts jsonb, guest jsonb`
