import type { DbTransaction } from '@bootfarm/db'
import type { BootReport, Report } from '@bootfarm/proto/uplink'
import type { AuthenticatedEdge } from '../../context/service-context.ts'
import { isStillThere } from '../../rules/device/device-wait.ts'

type WaitingReport = Extract<Report, { type: 'waiting' }>

/** A waiting device that is not heard for so long is no longer shown as waiting. */
const rememberedMs = 90 * 86_400_000

/**
 * Records that devices wait for another edge of this edge's site. A report that is late, after the device is back or
 * has started another boot, has no effect. Boots come first: they may be in the same batch.
 * @returns the boots whose devices wait
 */
export async function applyWaiting(
  transaction: DbTransaction,
  { organizationId, edgeId, siteId }: AuthenticatedEdge,
  { reports, now }: { reports: WaitingReport[]; now: Date },
): Promise<string[]> {
  const newest = [...new Map(reports.map((report) => [report.bootId, report])).values()]
  const rows = newest.map(({ bootId, mac, edgeId, startedUnixMs, atUs }) => {
    const startedAt = Math.min(startedUnixMs, now.getTime())
    const since = Math.min(startedAt + atUs / 1000, now.getTime())
    return {
      boot_id: bootId,
      mac,
      edge_id: edgeId,
      asked_us: atUs,
      started_at: new Date(startedAt),
      waits_since: new Date(since),
    }
  })
  await transaction.bootWait.deleteMany({
    where: {
      organizationId,
      askedEdgeId: edgeId,
      receivedAt: { lt: new Date(now.getTime() - rememberedMs) },
    },
  })
  const kept = await transaction.$queryRaw<{ id: string }[]>`
      insert into boot_wait (organization_id, boot_id, site_id, mac, edge_id, asked_edge_id, started_at, waits_since,
        asked_us, resumed_us, received_at)
      select ${organizationId}::uuid, row.boot_id, ${siteId}::uuid, row.mac, home.id, ${edgeId}::uuid, row.started_at,
        row.waits_since, row.asked_us, (detail.facts ->> 'resumedUs')::bigint, ${now}
      from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as row (boot_id uuid, mac text, edge_id uuid, asked_us bigint,
        started_at timestamptz, waits_since timestamptz)
      join edge as home on home.organization_id = ${organizationId}::uuid and home.site_id = ${siteId}::uuid
        and home.id = row.edge_id and home.id <> ${edgeId}::uuid
      left join boot_key as key on key.organization_id = home.organization_id and key.boot_id = row.boot_id
      left join boot_detail as detail on detail.organization_id = key.organization_id and detail.boot_id = key.boot_id
        and detail.received_on = key.received_on
      where coalesce((detail.facts ->> 'resumedUs')::bigint < row.asked_us, true)
        and not exists (select 1 from device where organization_id = home.organization_id and site_id = home.site_id
          and mac = row.mac and last_boot_id <> row.boot_id and last_boot_started_at > row.started_at)
      on conflict (organization_id, boot_id) do update set edge_id = excluded.edge_id,
        asked_edge_id = excluded.asked_edge_id, waits_since = excluded.waits_since, asked_us = excluded.asked_us,
        resumed_us = excluded.resumed_us, received_at = excluded.received_at
        where excluded.asked_us > boot_wait.asked_us
      returning boot_id::text as id`
  return kept.map(({ id }) => id)
}

/**
 * Removes the waits of devices that continue, according to the reports just applied. The caller holds the
 * site's lock.
 */
export async function endWaits(
  transaction: DbTransaction,
  { organizationId, edgeId, siteId }: AuthenticatedEdge,
  boots: BootReport[],
): Promise<void> {
  const rows = boots.map((boot) => ({
    id: boot.id,
    mac: boot.mac,
    started_at: new Date(boot.startedUnixMs),
    resumed_us: boot.resumedUs ?? null,
    is_over: !isStillThere(boot.outcome) || boot.handOver !== undefined,
  }))
  await transaction.$executeRaw`
    delete from boot_wait as wait
    using jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as row (id uuid, mac text, started_at timestamptz,
      resumed_us bigint, is_over boolean)
    where wait.organization_id = ${organizationId}::uuid and wait.site_id = ${siteId}::uuid and (
      wait.boot_id = row.id and (row.is_over
        or wait.edge_id = ${edgeId}::uuid and row.resumed_us is not null and row.resumed_us is distinct from wait.resumed_us)
      or wait.boot_id <> row.id and wait.mac = row.mac and row.started_at > wait.started_at)`
}
