import { Instant } from '../../components/instant'
import { Panel } from '../../components/panel'
import { Table } from '../../components/table'
import { countOf } from '../../lib/format-quantity'
import type { RouterOutputs } from '../../lib/trpc'

type EdgeDetail = RouterOutputs['edge']['get']
type Gap = EdgeDetail['reportGaps'][number]

/**
 * What the edge could not keep while the control plane was away: boots went on, and are missing in the lists. Nothing
 * where nothing was lost.
 */
export function LostReports({ edge: { reportsLost, reportGaps } }: { edge: EdgeDetail }) {
  if (reportsLost === 0) return null
  const shown = reportGaps.reduce((sum, { count }) => sum + count, 0)
  return (
    <Panel title="Lost reports" flush>
      <p role="status" className="px-4 py-3 text-silent text-sm">
        This edge lost {countOf(reportsLost, 'report')}. Devices booted, but boots from these times may be missing or
        unfinished in the lists. For a larger log, set <span className="font-mono text-xs">serve --report-log</span>.
        {shown < reportsLost && ` The times of ${countOf(reportsLost - shown, 'report')} are no longer stored.`}
      </p>
      {reportGaps.length > 0 && (
        <Table
          label="Lost reports"
          columns={[
            { title: 'Reports', cell: (gap: Gap) => countOf(gap.count, 'report') },
            { title: 'From', cell: (gap: Gap) => (gap.fromAt ? <Instant at={gap.fromAt} /> : 'unknown') },
            { title: 'To', cell: (gap: Gap) => (gap.untilAt ? <Instant at={gap.untilAt} /> : 'unknown') },
            { title: 'Reason', wide: true, cell: (gap: Gap) => gap.reason },
            { title: 'Detected', from: 'sm', cell: (gap: Gap) => <Instant at={gap.declaredAt} /> },
          ]}
          rows={reportGaps}
          rowKey={(gap: Gap) => `${gap.declaredAt} ${gap.fromAt} ${gap.count} ${gap.reason}`}
        />
      )}
    </Panel>
  )
}
