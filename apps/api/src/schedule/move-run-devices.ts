import { type DbTransaction, Prisma } from '@bootfarm/db'

/**
 * Gives devices of runs another state, and the runs their counts. A run that is over keeps its figures: webhooks were
 * told them. One that was missed has none yet.
 * @param wanted selects run_id, device_id, state, and reason, text, edge_id, sent_at, boot_id: null leaves what there
 *   is
 */
export async function moveDevices(
  transaction: DbTransaction,
  organizationId: string,
  wanted: Prisma.Sql,
): Promise<void> {
  // A count locks the runs in one order, so that nobody counts what another is changing.
  await transaction.$queryRaw`select id from schedule_run where organization_id = ${organizationId}::uuid
    and id in (select run_id from (${wanted}) as wanted) order by id for update`
  const difference = (state: string) =>
    Prisma.sql`(count(*) filter (where state = ${state}::"ScheduleRunDeviceState")
      - count(*) filter (where was = ${state}::"ScheduleRunDeviceState"))::integer`
  await transaction.$executeRaw`
    with wanted as (${wanted}), changed as (
      update schedule_run_device as device set state = wanted.state, reason = wanted.reason,
        text = coalesce(wanted.text, device.text), edge_id = coalesce(wanted.edge_id, device.edge_id),
        sent_at = coalesce(device.sent_at, wanted.sent_at), boot_id = coalesce(wanted.boot_id, device.boot_id)
      from wanted, schedule_run_device as before, schedule_run as run
      where run.organization_id = device.organization_id and run.id = device.run_id
        and not (run.closed_at is not null and run.state in ('done', 'stopped'))
        and device.organization_id = ${organizationId}::uuid and device.run_id = wanted.run_id
        and device.device_id = wanted.device_id and before.organization_id = device.organization_id
        and before.run_id = device.run_id and before.device_id = device.device_id
      returning device.run_id, before.state as was, device.state
    ), counted as (
      select run_id, ${difference('waiting')} as waiting, ${difference('sent')} as sent, ${difference('booting')} as booting,
        ${difference('ready')} as ready, ${difference('failed')} as failed, ${difference('not_seen')} as not_seen,
        ${difference('skipped')} as skipped from changed group by run_id
    )
    update schedule_run as run set waiting_count = waiting_count + waiting, sent_count = sent_count + sent,
      booting_count = booting_count + booting, ready_count = ready_count + ready, failed_count = failed_count + failed,
      not_seen_count = not_seen_count + not_seen, skipped_count = skipped_count + skipped
    from counted where run.organization_id = ${organizationId}::uuid and run.id = counted.run_id`
}

export interface DeviceResult {
  deviceId: string
  at: Date
  state: 'sent' | 'failed' | 'skipped'
  reason: string | null
  text: string | null
}

/**
 * Stores what an edge did with devices of a run. Another edge's report does not revoke that a device was switched on.
 */
export async function noteResults(
  transaction: DbTransaction,
  { organizationId, edgeId }: { organizationId: string; edgeId: string },
  { runId, results }: { runId: string; results: DeviceResult[] },
): Promise<void> {
  if (results.length === 0) return
  const rows = results.map(({ deviceId, at, state, reason, text }) => ({
    device_id: deviceId,
    state,
    reason,
    text,
    sent_at: state === 'skipped' ? null : at.toISOString(),
  }))
  await moveDevices(
    transaction,
    organizationId,
    Prisma.sql`select device.run_id, device.device_id, row.state, row.reason, row.text, ${edgeId}::uuid as edge_id, row.sent_at,
        null::uuid as boot_id
      from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as row (device_id uuid, state "ScheduleRunDeviceState",
        reason text, text text, sent_at timestamptz)
      join schedule_run_device as device on device.organization_id = ${organizationId}::uuid
        and device.run_id = ${runId}::uuid and device.device_id = row.device_id
      where device.state in ('waiting', 'not_seen')
        or (device.state in ('failed', 'skipped') and device.boot_id is null and row.state = 'sent')`,
  )
}

/** Boots that turned out to be none. */
export function untieBoots(transaction: DbTransaction, organizationId: string, bootIds: string[]): Promise<unknown> {
  return moveDevices(
    transaction,
    organizationId,
    Prisma.sql`select run_id, device_id, 'sent'::"ScheduleRunDeviceState" as state, null::text as reason, null::text as text,
      null::uuid as edge_id, null::timestamptz as sent_at, null::uuid as boot_id from schedule_run_device
      where organization_id = ${organizationId}::uuid and boot_id = any(${bootIds}::uuid[])`,
  ).then(() =>
    transaction.scheduleRunDevice.updateMany({
      where: { organizationId, bootId: { in: bootIds } },
      data: { bootId: null },
    }),
  )
}

/** Devices of a run that nothing more is to be heard of, at one site or at all. */
export function giveUp(
  transaction: DbTransaction,
  organizationId: string,
  end: { runId: string; siteId?: string; from: string[]; state: 'not_seen' | 'skipped'; reason: string },
): Promise<void> {
  const place = end.siteId
    ? Prisma.sql`and device_id in (select id from device where organization_id = ${organizationId}::uuid
        and site_id = ${end.siteId}::uuid)`
    : Prisma.empty
  return moveDevices(
    transaction,
    organizationId,
    Prisma.sql`select run_id, device_id, ${end.state}::"ScheduleRunDeviceState" as state, ${end.reason} as reason,
      null::text as text, null::uuid as edge_id, null::timestamptz as sent_at, null::uuid as boot_id
      from schedule_run_device where organization_id = ${organizationId}::uuid and run_id = ${end.runId}::uuid
      and state::text = any(${end.from}::text[]) ${place}`,
  )
}
