import type { DbTransaction } from '@bootfarm/db'
import type { BootReport, ReceivedReport, ReportBatch } from '@bootfarm/proto/uplink'
import type { ChangedTopic } from '../../context/notifications.ts'
import type { AuthenticatedEdge, SystemContext } from '../../context/service-context.ts'
import { AppError } from '../../errors/app-error.ts'
import { emit } from '../../events/event-bus.ts'
import type { AppliedReports } from '../../rules/telemetry.ts'
import { adoptDevices } from './adopt-devices.ts'
import { applyDeviceKeys } from './apply-device-keys.ts'
import { applyDiscovered } from './apply-discovered.ts'
import { applyScheduleRuns } from './apply-schedule-runs.ts'
import { applyWaiting, endWaits } from './apply-waiting.ts'
import { ensureBootPartitions } from './boot-partitions.ts'
import { type BootChanges, numberChanges } from './number-changes.ts'
import { tieReportedBoots } from './tie-boots.ts'
import { readBoots, withdrawBoots } from './withdraw-boots.ts'
import { writeBoots } from './write-boots.ts'

interface AppliedBatch extends AppliedReports {
  /** The last seq that is applied and durable. */
  ackedSeq: number
  /**
   * To be announced after the commit: PostgreSQL commits transactions that notify one after the other, over the whole
   * server.
   */
  changed: Set<ChangedTopic>
}

/**
 * Applies each report once: the cursor of (edge, epoch) is locked, and advanced in the transaction that writes the
 * boots. Reports that are already applied are skipped; unreadable ones count as lost. Throws `invalid_body` for seqs
 * that are not consecutive, `report_gap` with `expectedSeq`.
 */
export async function applyReports(
  { db, clock }: SystemContext,
  edge: AuthenticatedEdge,
  batch: ReportBatch,
): Promise<AppliedBatch> {
  requireConsecutive(batch)
  const now = clock()
  // Separately, before anything is locked: a missing partition is created under separate locks.
  await ensureBootPartitions(db, now)
  return db.$transaction(async (transaction) => {
    const acked = await lockCursor(transaction, edge, { bootEpoch: batch.bootEpoch, now })
    if (batch.fromSeq > acked + 1)
      throw new AppError('report_gap', {
        public: `Reports ${acked + 1} to ${batch.fromSeq - 1} are missing.`,
        extra: { expectedSeq: acked + 1 },
      })
    const fresh = batch.reports.filter((report) => lastSeqOf(report) > acked)
    const last = fresh.at(-1)
    if (!last) return { ackedSeq: acked, counts: new Map(), lostCount: 0, endedBoots: [], changed: new Set() }
    const { adoptsDevices } = await lockSite(transaction, edge)
    const { endedBoots, changed, ...changes } = await applyFresh(transaction, edge, { fresh, adoptsDevices, now })
    const ackedSeq = lastSeqOf(last)
    const { organizationId, edgeId } = edge
    const lostCount = await keepGaps(transaction, edge, { bootEpoch: batch.bootEpoch, fresh, acked, now })
    await transaction.$executeRaw`
      update report_cursor set acked_seq = ${ackedSeq}, lost_count = lost_count + ${lostCount}, updated_at = ${now}
      where organization_id = ${organizationId}::uuid and edge_id = ${edgeId}::uuid and boot_epoch = ${batch.bootEpoch}`
    await numberChanges(transaction, organizationId, changes)
    return { ackedSeq, counts: countByType(fresh), lostCount, endedBoots, changed }
  })
}

function countByType(reports: ReceivedReport[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { type } of reports) counts.set(type, (counts.get(type) ?? 0) + 1)
  return counts
}

async function applyFresh(
  transaction: DbTransaction,
  edge: AuthenticatedEdge,
  { fresh, adoptsDevices, now }: { fresh: ReceivedReport[]; adoptsDevices: boolean; now: Date },
): Promise<BootChanges & Pick<AppliedBatch, 'endedBoots' | 'changed'>> {
  const changed = new Set<ChangedTopic>()
  const devices = fresh.flatMap((report) => (report.type === 'discovered' ? [report.device] : []))
  if (devices.length > 0 && (await applyDiscovered(transaction, edge, { devices, now }))) changed.add('discovered')
  const boots = await readBoots(transaction, edge, fresh)
  let written: Awaited<ReturnType<typeof writeBoots>> = { writtenIds: [], endedBoots: [] }
  if (boots.length > 0) {
    if (adoptsDevices && (await adoptDevices(transaction, edge, { boots, now }))) changed.add('discovered')
    written = await writeBoots(transaction, edge, { boots, now })
    await applyDeviceKeys(transaction, edge, { boots, now })
    await endWaits(transaction, edge, boots)
    await takePowerOrders(transaction, edge, { boots, now })
    await emit('bootsReported', { db: transaction, now, edge, boots })
    await tieReportedBoots(transaction, edge.organizationId, { bootIds: boots.map(({ id }) => id), now })
  }
  const runs = fresh.flatMap((report) => (report.type === 'schedule_run' ? [report.run] : []))
  if (runs.length > 0) await applyScheduleRuns(transaction, edge, { reports: runs, now })
  const withdrawals = fresh.filter((report) => report.type === 'withdrawn')
  const withdrawnIds = withdrawals.length > 0 ? await withdrawBoots(transaction, edge, { withdrawals, now }) : []
  const waits = fresh.filter((report) => report.type === 'waiting')
  const waitingIds = waits.length > 0 ? await applyWaiting(transaction, edge, { reports: waits, now }) : []
  if (boots.length + withdrawals.length + waits.length + runs.length > 0) changed.add('boots')
  return { endedBoots: written.endedBoots, bootIds: [...written.writtenIds, ...waitingIds], withdrawnIds, changed }
}

/**
 * Boots, sums and waits are read and then written, and all of them are the site's: its edges take turns here. Throws
 * `unavailable` for a site in the trash: its edges keep their reports, as it may be restored.
 */
async function lockSite(
  transaction: DbTransaction,
  { organizationId, siteId }: AuthenticatedEdge,
): Promise<{ adoptsDevices: boolean }> {
  const [row] = await transaction.$queryRaw<{ unknown_devices: string | null }[]>`
    select (select unknown_devices::text from site where organization_id = ${organizationId}::uuid
        and id = ${siteId}::uuid) as unknown_devices,
      pg_advisory_xact_lock(hashtextextended(${`boots of ${siteId}`}, 0))::text as locked`
  if (!row?.unknown_devices)
    throw new AppError('unavailable', {
      public: 'The site of this edge is in the trash. Its reports are accepted when it is restored.',
    })
  return { adoptsDevices: row.unknown_devices === 'boot' }
}

function requireConsecutive(batch: ReportBatch): void {
  let expected = batch.fromSeq
  for (const report of batch.reports) {
    if (report.seq !== expected)
      throw new AppError('invalid_body', {
        public: `Report ${report.seq} is out of sequence; ${expected} was expected.`,
      })
    expected = lastSeqOf(report) + 1
  }
}

async function lockCursor(
  transaction: DbTransaction,
  { organizationId, edgeId }: AuthenticatedEdge,
  { bootEpoch, now }: { bootEpoch: number; now: Date },
): Promise<number> {
  const lock = () => transaction.$queryRaw<{ acked_seq: bigint }[]>`
    select acked_seq from report_cursor where organization_id = ${organizationId}::uuid
      and edge_id = ${edgeId}::uuid and boot_epoch = ${bootEpoch} for update`
  const [known] = await lock()
  if (known) return Number(known.acked_seq)
  await transaction.$executeRaw`
    insert into report_cursor (organization_id, edge_id, boot_epoch, updated_at)
    values (${organizationId}::uuid, ${edgeId}::uuid, ${bootEpoch}, ${now}) on conflict do nothing`
  const [made] = await lock()
  return Number(made?.acked_seq ?? 0n)
}

/**
 * Marks the orders that devices have taken, according to their boots. Each is marked once, only for the device that it
 * was given to, and even after it has expired: the report may be late.
 */
async function takePowerOrders(
  transaction: DbTransaction,
  { organizationId, edgeId }: AuthenticatedEdge,
  { boots, now }: { boots: BootReport[]; now: Date },
): Promise<void> {
  const said = boots.flatMap(({ id, guest, lost }) =>
    [guest?.powerOrderId, lost?.powerOrderId].flatMap((order) => (order ? [{ boot_id: id, order_id: order }] : [])),
  )
  if (said.length === 0) return
  await transaction.$executeRaw`
    update power_order set taken_at = ${now}, taken_boot_id = boot.id
    from jsonb_to_recordset(${JSON.stringify(said)}::jsonb) as said (boot_id uuid, order_id uuid)
    join boot_key on boot_key.organization_id = ${organizationId}::uuid and boot_key.boot_id = said.boot_id
    join boot on boot.organization_id = ${organizationId}::uuid and boot.id = boot_key.boot_id
      and boot.received_on = boot_key.received_on and boot.edge_id = ${edgeId}::uuid
    where power_order.organization_id = ${organizationId}::uuid and power_order.id = said.order_id
      and power_order.device_id = boot.device_id and power_order.taken_at is null`
}

/** Per edge; older gaps remain in the count of lost reports. */
const gapsKeptMax = 100
const reasonLengthMax = 64

interface FreshReports {
  bootEpoch: number
  /** Some of them may overlap the applied ones. */
  fresh: ReceivedReport[]
  acked: number
  now: Date
}

/**
 * Stores, for the edge's page, the reports that the edge could not send or that could not be read.
 * @returns their number
 */
async function keepGaps(
  transaction: DbTransaction,
  { organizationId, edgeId }: AuthenticatedEdge,
  { bootEpoch, fresh, acked, now }: FreshReports,
): Promise<number> {
  const gaps = fresh.flatMap((report) => gapOf(report, acked, now))
  if (gaps.length === 0) return 0
  await transaction.reportGap.createMany({
    data: gaps.map((gap) => ({ organizationId, edgeId, bootEpoch, declaredAt: now, ...gap })),
    skipDuplicates: true,
  })
  await transaction.$executeRaw`
    delete from report_gap where organization_id = ${organizationId}::uuid and edge_id = ${edgeId}::uuid
      and (boot_epoch, from_seq) not in (
        select boot_epoch, from_seq from report_gap where organization_id = ${organizationId}::uuid and edge_id = ${edgeId}::uuid
        order by declared_at desc, boot_epoch desc, from_seq desc limit ${gapsKeptMax})`
  return gaps.reduce((count, { fromSeq, untilSeq }) => count + untilSeq - fromSeq + 1, 0)
}

function gapOf(report: ReceivedReport, acked: number, now: Date) {
  const reason = 'reason' in report ? report.reason.slice(0, reasonLengthMax) : ''
  if (report.type === 'unreadable')
    return [{ fromSeq: report.seq, untilSeq: report.seq, reason, fromAt: null, untilAt: null }]
  if (report.type !== 'gap') return []
  // An edge's clock may be years ahead.
  const at = (unixMs: number | undefined) => (unixMs === undefined ? null : new Date(Math.min(unixMs, now.getTime())))
  const [fromAt, untilAt] = [at(report.fromUnixMs), at(report.untilUnixMs)]
  return [{ fromSeq: Math.max(report.seq, acked + 1), untilSeq: lastSeqOf(report), reason, fromAt, untilAt }]
}

/** A `gap` stands for all records up to `untilSeq`. */
function lastSeqOf(report: ReceivedReport): number {
  return report.type === 'gap' ? Math.max(report.seq, report.untilSeq) : report.seq
}
