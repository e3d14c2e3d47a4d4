import type { DbTransaction } from '@bootfarm/db'
import type { ReceivedReport } from '@bootfarm/proto/uplink'
import type { AuthenticatedEdge } from '../../context/service-context.ts'

/** Of each edge; older ones are still in the count of what was lost. */
const gapsKeptMax = 100
const reasonLengthMax = 64

interface FreshReports {
  bootEpoch: number
  /** Some of them may overlap what is applied. */
  fresh: ReceivedReport[]
  acked: number
  now: Date
}

/**
 * Keeps what the edge says it could not report, and what could not be read, for its page.
 * @returns how many reports that were
 */
export async function keepGaps(
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

/** A `gap` stands for all the records up to `untilSeq`. */
export function lastSeqOf(report: ReceivedReport): number {
  return report.type === 'gap' ? Math.max(report.seq, report.untilSeq) : report.seq
}
