import { type DbTransaction, Prisma } from '@bootfarm/db'
import { settleRuns } from '../../schedule/end-runs.ts'
import { moveDevices } from '../../schedule/move-run-devices.ts'
import { bootWindowMs } from '../../schedule/schedule-horizon.ts'

/** An edge's clock may be set between a power-on and the boot that follows. */
const bootBeforeMs = 60_000

/** The boots to examine, and the days of the partitions that hold them and the boots that are already tied. */
interface Candidates {
  /** A condition over `boot` and `device`. */
  which: Prisma.Sql
  days: string[]
  tiedDays: string[]
}

const followsPowerOn = Prisma.sql`device.organization_id = boot.organization_id and device.device_id = boot.device_id
  and device.sent_at > boot.started_at - make_interval(secs => ${bootWindowMs / 1000})
  and device.sent_at < boot.started_at + make_interval(secs => ${bootBeforeMs / 1000})`

/**
 * Ties boots to the run whose power-on preceded them within 15 minutes. The first boot counts, or one that replaced it;
 * never one that started before its run.
 */
async function tieBoots(
  transaction: DbTransaction,
  organizationId: string,
  { which, days, tiedDays }: Candidates,
): Promise<void> {
  await moveDevices(
    transaction,
    organizationId,
    Prisma.sql`select distinct on (device.run_id, device.device_id) device.run_id, device.device_id,
        (case when boot.outcome is null or boot.outcome = 'superseded' then 'booting'
          when boot.outcome in ('ready', 'local_disk') then 'ready'
          when boot.outcome = 'no_response' then 'not_seen'
          else 'failed' end)::"ScheduleRunDeviceState" as state,
        (case when boot.outcome = 'no_response' then 'no_answer' end) as reason,
        null::text as text, null::uuid as edge_id, null::timestamptz as sent_at, boot.id as boot_id
      from boot join schedule_run_device as device on ${followsPowerOn}
      left join boot as tied on tied.organization_id = device.organization_id and tied.id = device.boot_id
        and tied.received_on = any(${tiedDays}::date[])
      where boot.organization_id = ${organizationId}::uuid and boot.received_on = any(${days}::date[]) and ${which}
        and boot.started_at >= (select run.started_at - interval '1 second' from schedule_run as run
          where run.organization_id = device.organization_id and run.id = device.run_id)
        and (tied.id is null or tied.id = boot.id
          or (tied.outcome = 'superseded' and tied.started_at <= boot.started_at))
      order by device.run_id, device.device_id, boot.outcome is not distinct from 'superseded', boot.started_at, boot.id`,
  )
}

export async function tieReportedBoots(
  transaction: DbTransaction,
  organizationId: string,
  { bootIds, now }: { bootIds: string[]; now: Date },
): Promise<void> {
  const rows = await transaction.$queryRaw<{ day: string; tied_day: string | null }[]>`
    select distinct boot.received_on::text as day, tied.received_on::text as tied_day
    from boot_key as key join boot on boot.organization_id = key.organization_id and boot.id = key.boot_id
      and boot.received_on = key.received_on
    join schedule_run_device as device on ${followsPowerOn}
    left join boot_key as tied on tied.organization_id = device.organization_id and tied.boot_id = device.boot_id
    where key.organization_id = ${organizationId}::uuid and key.boot_id = any(${bootIds}::uuid[])`
  // Most boots follow no power-on of a run.
  if (rows.length === 0) return
  const which = Prisma.sql`boot.id = any(${bootIds}::uuid[])`
  const days = [...new Set(rows.map(({ day }) => day))]
  const tiedDays = [...new Set(rows.flatMap(({ tied_day }) => tied_day ?? []))]
  await tieBoots(transaction, organizationId, { which, days, tiedDays })
  // Each of these may have been the last one that its run waited for. A boot is tied to the run that it follows.
  const runs = await transaction.$queryRaw<{ id: string }[]>`
    select run.id::text from schedule_run as run where run.organization_id = ${organizationId}::uuid and run.closed_at is null
      and run.id in (select run_id from schedule_run_device
        where organization_id = ${organizationId}::uuid and boot_id = any(${bootIds}::uuid[]))
    order by run.id for update`
  await settleRuns(transaction, { organizationId, runIds: runs.map(({ id }) => id), now })
}

/** For a power-on that is reported after its boot. */
export async function tieBootsOfRun(
  transaction: DbTransaction,
  organizationId: string,
  { runId, deviceIds }: { runId: string; deviceIds: string[] },
): Promise<void> {
  const ofRun = Prisma.sql`device.organization_id = ${organizationId}::uuid and device.run_id = ${runId}::uuid
    and device.device_id = any(${deviceIds}::uuid[])`
  // Nothing is reported before it happened.
  const since = await transaction.$queryRaw<{ day: string }[]>`
    select received_on::text as day from boot_day where organization_id = ${organizationId}::uuid
      and received_on >= (select (min(sent_at) at time zone 'UTC')::date - 1 from schedule_run_device as device where ${ofRun})`
  const tied = await transaction.$queryRaw<{ day: string }[]>`
    select distinct key.received_on::text as day from schedule_run_device as device
    join boot_key as key on key.organization_id = device.organization_id and key.boot_id = device.boot_id where ${ofRun}`
  await tieBoots(transaction, organizationId, {
    which: Prisma.sql`device.run_id = ${runId}::uuid and boot.device_id = any(${deviceIds}::uuid[])`,
    days: since.map(({ day }) => day),
    tiedDays: tied.map(({ day }) => day),
  })
}
