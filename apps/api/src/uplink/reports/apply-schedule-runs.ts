import type { DbTransaction } from '@bootfarm/db'
import type { ScheduleRunReport } from '@bootfarm/proto/uplink'
import { type AuthenticatedEdge, ownRow } from '../../context/service-context.ts'
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
    update schedule_run set started_at = least(started_at, ${startedAt}), reason = null,
      state = case when state in ('waiting', 'missed') then 'running' else state end
    where organization_id = ${organizationId}::uuid and id = ${runId}::uuid`
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
  // Several edges and sites may share a run: it is done when each device has been started or skipped.
  await transaction.$executeRaw`update schedule_run set state = 'done', ended_at = ${now}
    where organization_id = ${organizationId}::uuid and id = ${runId}::uuid and state = 'running' and waiting_count = 0`
}

function resultOf(device: ScheduleRunReport['devices'][number], at: Date): DeviceResult {
  const { deviceId, result, text = null } = device
  if (result === 'sent') return { deviceId, at, state: 'sent', reason: null, text }
  if (result === 'hook_failed') return { deviceId, at, state: 'failed', reason: 'hook_failed', text }
  return { deviceId, at, state: 'skipped', reason: result, text }
}

/** The edge was off, or its clock was wrong: its devices stay off, unless another edge started them. */
async function applyMissed(
  transaction: DbTransaction,
  { organizationId, siteId }: AuthenticatedEdge,
  { report, known, now }: { report: ScheduleRunReport; known: Date[]; now: Date },
): Promise<void> {
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
    // If the site has another edge, that one may have started them, or may yet report it.
    await giveUp(transaction, organizationId, { runId, siteId, from: ['waiting'], state: 'not_seen', reason })
    await transaction.$executeRaw`
      update schedule_run set reason = ${reason}, state = case when started_at is null then 'missed' else state end,
        ended_at = coalesce(ended_at, ${now})
      where organization_id = ${organizationId}::uuid and id = ${runId}::uuid and waiting_count = 0`
  }
}
