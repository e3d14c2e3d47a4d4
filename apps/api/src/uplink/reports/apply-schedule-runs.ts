import type { DbTransaction } from '@bootfarm/db'
import type { ScheduleRunReport } from '@bootfarm/proto/uplink'
import { type AuthenticatedEdge, ownRow } from '../../context/service-context.ts'
import { settleRuns } from '../../schedule/end-runs.ts'
import { type DeviceResult, giveUp, noteResults } from '../../schedule/move-run-devices.ts'
import { prepareRun } from '../../schedule/prepare-run.ts'
import { tieBootsOfRun } from './tie-boots.ts'

/** A run that is older is not created from an edge's report. */
const missedRunsMax = 100

/**
 * Stores an edge's reports about the runs of its site's schedules; nothing is stored for a schedule that no longer
 * exists.
 */
export async function applyScheduleRuns(
  transaction: DbTransaction,
  edge: AuthenticatedEdge,
  { reports, now }: { reports: ScheduleRunReport[]; now: Date },
): Promise<void> {
  const { organizationId, siteId } = edge
  for (const report of reports) {
    const schedule = await transaction.schedule.findUnique({
      where: ownRow({ organizationId }, report.scheduleId),
      select: { farmId: true, siteId: true, instants: true },
    })
    if (!schedule || (schedule.siteId ?? siteId) !== siteId) continue
    const { farmId } = schedule
    if ((await transaction.site.count({ where: { organizationId, farmId, id: siteId } })) === 0) continue
    if (report.state === 'missed') await applyMissed(transaction, edge, { report, known: schedule.instants, now })
    else await applyProgress(transaction, edge, { report, now })
  }
}

async function applyProgress(
  transaction: DbTransaction,
  edge: AuthenticatedEdge,
  { report, now }: { report: ScheduleRunReport; now: Date },
): Promise<void> {
  const { organizationId, siteId } = edge
  const instant = new Date(report.instantUnixMs)
  const runId = await prepareRun(transaction, { organizationId, scheduleId: report.scheduleId, instant }, { now })
  if (!runId) return
  // An edge's clock may be years ahead: nothing happened after it was reported.
  const clamped = (unixMs: number) => new Date(Math.min(unixMs, now.getTime()))
  const startedAt = clamped(report.startedUnixMs ?? report.instantUnixMs)
  await transaction.$executeRaw`
    update schedule_run set started_at = least(started_at, ${startedAt}),
      reason = case when state in ('done', 'stopped') then reason end,
      closed_at = case when state = 'missed' then null else closed_at end,
      state = case when state in ('waiting', 'missed') then 'running' else state end
    where organization_id = ${organizationId}::uuid and id = ${runId}::uuid`
  await noteEdge(transaction, edge, { runId, state: report.state, now })
  const results = report.devices.map((device) => resultOf(device, clamped(device.atUnixMs)))
  await noteResults(transaction, edge, { runId, results })
  const deviceIds = results.map(({ deviceId }) => deviceId)
  if (deviceIds.length > 0) await tieBootsOfRun(transaction, organizationId, { runId, deviceIds })
  if (report.state === 'stopped') {
    await giveUp(transaction, organizationId, {
      runId,
      siteId,
      from: ['waiting'],
      state: 'skipped',
      reason: 'stopped',
    })
    await transaction.$executeRaw`update schedule_run set state = 'stopped', ended_at = coalesce(ended_at, ${now})
      where organization_id = ${organizationId}::uuid and id = ${runId}::uuid and state = 'running'`
  }
  await settleRuns(transaction, { organizationId, runIds: [runId], now })
}

/** An edge that joined since the run began is one of its edges from its report on; none after the run is over. */
async function noteEdge(
  transaction: DbTransaction,
  { organizationId, edgeId, siteId }: AuthenticatedEdge,
  { runId, state, now }: { runId: string; state: ScheduleRunReport['state']; now: Date },
): Promise<void> {
  await transaction.$executeRaw`
    insert into schedule_run_edge (organization_id, run_id, edge_id, site_id, state, changed_at)
    select organization_id, id, ${edgeId}::uuid, ${siteId}::uuid, ${state}, ${now} from schedule_run as run
    where run.organization_id = ${organizationId}::uuid and run.id = ${runId}::uuid
      and not (run.closed_at is not null and run.state in ('done', 'stopped'))
    on conflict (organization_id, run_id, edge_id) do update set state = excluded.state, changed_at = excluded.changed_at
    where schedule_run_edge.state <> excluded.state`
}

/** Whether an edge of the site may yet report devices of the run. */
async function isAwaited(transaction: DbTransaction, { organizationId, siteId }: AuthenticatedEdge, runId: string) {
  const where = { organizationId, runId, siteId, state: { in: ['waiting', 'running'] } }
  return (await transaction.scheduleRunEdge.count({ where })) > 0
}

function resultOf(device: ScheduleRunReport['devices'][number], at: Date): DeviceResult {
  const { deviceId, result, text = null } = device
  if (result === 'sent') return { deviceId, at, state: 'sent', reason: null, text }
  if (result === 'hook_failed') return { deviceId, at, state: 'failed', reason: 'hook_failed', text }
  return { deviceId, at, state: 'skipped', reason: result, text }
}

/** The edge was off, or its clock was wrong: its devices stay off, unless another edge starts them. */
async function applyMissed(
  transaction: DbTransaction,
  edge: AuthenticatedEdge,
  { report, known, now }: { report: ScheduleRunReport; known: Date[]; now: Date },
): Promise<void> {
  const { organizationId, siteId } = edge
  const { scheduleId, instantUnixMs, untilUnixMs = instantUnixMs, reason = 'late' } = report
  const range = { gte: new Date(instantUnixMs), lte: new Date(Math.min(untilUnixMs, now.getTime())) }
  const missing = known.filter((at) => at >= range.gte && at <= range.lte).slice(-missedRunsMax)
  for (const instant of missing) await prepareRun(transaction, { organizationId, scheduleId, instant }, { now })
  const runs = await transaction.scheduleRun.findMany({
    where: { organizationId, scheduleId, instant: range, state: { in: ['waiting', 'running'] } },
    orderBy: { instant: 'desc' },
    take: missedRunsMax,
    select: { id: true },
  })
  for (const { id: runId } of runs) {
    await transaction.$queryRaw`select id from schedule_run where organization_id = ${organizationId}::uuid
      and id = ${runId}::uuid for update`
    await noteEdge(transaction, edge, { runId, state: 'missed', now })
    // Another edge of the site may have started them.
    if (await isAwaited(transaction, edge, runId)) continue
    await giveUp(transaction, organizationId, { runId, siteId, from: ['waiting'], state: 'not_seen', reason })
    await transaction.$executeRaw`
      update schedule_run set reason = ${reason}, state = case when started_at is null then 'missed' else state end,
        ended_at = coalesce(ended_at, ${now})
      where organization_id = ${organizationId}::uuid and id = ${runId}::uuid and waiting_count = 0`
    await settleRuns(transaction, { organizationId, runIds: [runId], now })
  }
}
