import type { DbTransaction } from '@bootfarm/db'
import type { BootReport } from '@bootfarm/proto/uplink'
import { bootColumns } from '../../domain/boot-summary.ts'
import type { BootFacts } from '../boot/boot-rows.ts'
import type { AuthenticatedEdge } from './authenticate-edge.ts'

/**
 * Writes boots in one statement: a row is replaced only by a higher revision from the edge that made it, and the device's
 * last boot follows. Begin and arrival stay those of the first report.
 */
export async function writeBoots(
  transaction: DbTransaction,
  { organizationId, edgeId, siteId }: AuthenticatedEdge,
  { boots, now }: { boots: BootReport[]; now: Date },
): Promise<void> {
  const newest = newestRevisions(boots)
  const lastChange = await advanceFeed(transaction, organizationId, newest.length)
  const rows = newest.map((boot, index) => rowOf(boot, lastChange - newest.length + index + 1, now))
  await transaction.$executeRaw`
    with reported as (
      select * from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as row (
        id uuid, mac text, revision bigint, change bigint, started_at timestamptz, outcome "BootOutcome",
        failed_phase text, failed_cause text, failed_text text, last_phase text, total_us bigint, bytes_out bigint,
        retries bigint, simulated boolean, generated boolean, vdisk_id uuid, version_id uuid, menu_entry text, phases jsonb,
        facts jsonb, guest jsonb, write_cache_used_bytes bigint, write_cache_size_bytes bigint)
    ), written as (
      insert into boot (organization_id, edge_id, site_id, received_at, updated_at, device_id,
        id, mac, revision, change, started_at, outcome, failed_phase, failed_cause, failed_text, last_phase,
        total_us, bytes_out, retries, simulated, generated, vdisk_id, version_id, menu_entry, phases, facts, guest,
        write_cache_used_bytes, write_cache_size_bytes)
      select ${organizationId}::uuid, ${edgeId}::uuid, ${siteId}::uuid, ${now}, ${now}, device.id, reported.*
      from (select id, mac, revision, change, started_at, outcome, failed_phase, failed_cause, failed_text, last_phase,
        total_us, bytes_out, retries, simulated, generated, vdisk_id, version_id, menu_entry, phases, facts, guest,
        write_cache_used_bytes, write_cache_size_bytes from reported) as reported
      left join device on device.organization_id = ${organizationId}::uuid
        and device.site_id = ${siteId}::uuid and device.mac = reported.mac
      on conflict (organization_id, id) do update set
        updated_at = excluded.updated_at, revision = excluded.revision, change = excluded.change,
        outcome = excluded.outcome, failed_phase = excluded.failed_phase, failed_cause = excluded.failed_cause,
        failed_text = excluded.failed_text, last_phase = excluded.last_phase, total_us = excluded.total_us,
        bytes_out = excluded.bytes_out, retries = excluded.retries, vdisk_id = excluded.vdisk_id,
        version_id = excluded.version_id, menu_entry = excluded.menu_entry, phases = excluded.phases, facts = excluded.facts,
        simulated = excluded.simulated, generated = excluded.generated, guest = coalesce(excluded.guest, boot.guest),
        write_cache_used_bytes = case when excluded.guest is null then boot.write_cache_used_bytes
          else excluded.write_cache_used_bytes end,
        write_cache_size_bytes = case when excluded.guest is null then boot.write_cache_size_bytes
          else excluded.write_cache_size_bytes end
      where boot.revision < excluded.revision and boot.edge_id = excluded.edge_id
      returning id, device_id, started_at, outcome, total_us, write_cache_used_bytes, write_cache_size_bytes
    ), newest as (
      select distinct on (device_id) * from written where device_id is not null
      order by device_id, started_at desc, id desc
    )
    update device set last_boot_id = newest.id, last_boot_started_at = newest.started_at,
      last_boot_outcome = newest.outcome, last_boot_total_us = newest.total_us,
      last_boot_write_cache_percent = floor(
        least(newest.write_cache_used_bytes, newest.write_cache_size_bytes) * 100.0 / newest.write_cache_size_bytes
      )::integer
    from newest where device.organization_id = ${organizationId}::uuid and device.id = newest.device_id
      and (device.last_boot_started_at is null or device.last_boot_started_at <= newest.started_at)`
}

/** One statement cannot write a row twice: of each boot the highest revision, with the newest that its device said of itself. */
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

/** Locks the organization's feed until the transaction ends: see BootFeed in the schema. */
export async function advanceFeed(
  transaction: DbTransaction,
  organizationId: string,
  count: number,
): Promise<number> {
  const feed = await transaction.bootFeed.update({
    where: { organizationId },
    data: { lastChange: { increment: count } },
    select: { lastChange: true },
  })
  return Number(feed.lastChange)
}

function rowOf(boot: BootReport, change: number, now: Date) {
  const columns = bootColumns(boot, now)
  const facts: BootFacts = {
    machineId: boot.machineId,
    clientArch: boot.clientArch,
    vendorClass: boot.vendorClass,
    userClass: boot.userClass,
    ip: boot.ip,
    mtu: boot.mtu,
    reconnects: boot.reconnects,
    program: boot.program,
    offers: boot.offers,
    lastPackets: boot.lastPackets,
  }
  return {
    id: boot.id,
    mac: boot.mac,
    revision: boot.revision,
    change,
    started_at: columns.startedAt.toISOString(),
    outcome: columns.outcome,
    failed_phase: columns.failedPhase,
    failed_cause: columns.failedCause,
    failed_text: columns.failedText,
    last_phase: columns.lastPhase,
    total_us: columns.totalUs,
    bytes_out: columns.bytesOut,
    retries: columns.retries,
    simulated: boot.simulated,
    generated: boot.generated,
    vdisk_id: boot.vdiskId ?? null,
    version_id: boot.versionId ?? null,
    menu_entry: boot.menuEntry ?? null,
    phases: boot.phases,
    facts,
    guest: boot.guest ?? null,
    write_cache_used_bytes: boot.guest?.writeCache?.usedBytes ?? null,
    write_cache_size_bytes: boot.guest?.writeCache?.sizeBytes ?? null,
  }
}
