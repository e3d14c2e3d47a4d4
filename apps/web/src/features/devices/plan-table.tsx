import { Notice } from '../../components/field'
import { countOf, formatCount } from '../../lib/format-quantity'
import type { RouterOutputs } from '../../lib/trpc'

type Plan = RouterOutputs['device']['changeMany']

const rowsShownMax = 100
const kinds = { created: 'new', changed: 'changed', unchanged: 'unchanged', refused: 'refused' }

/** What becomes of each, those with problems first. */
export function PlanTable({ plan }: { plan: Plan }) {
  const rows = plan.rows.slice(0, rowsShownMax)
  const counts = [
    `${formatCount(plan.createdCount)} new`,
    `${formatCount(plan.changedCount)} changed`,
    `${formatCount(plan.unchangedCount)} unchanged`,
  ]
  return (
    <div className="flex flex-col gap-3">
      {plan.refusedCount > 0 ? (
        <Notice tone="silent">
          {countOf(plan.refusedCount, 'invalid row')}: nothing was changed. Otherwise: {counts.join(', ')}.
        </Notice>
      ) : (
        <Notice tone="live">{counts.join(', ')}.</Notice>
      )}
      <section
        aria-label="Preview of changes"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
        tabIndex={0}
        className="max-h-64 overflow-auto rounded-md border border-line"
      >
        <table className="w-full text-left text-xs">
          <caption className="sr-only">Preview of changes</caption>
          <tbody>
            {rows.map((row) => (
              <tr key={`${row.line} ${row.deviceId} ${row.mac}`} className="border-line border-t first:border-t-0">
                <td className="px-3 py-1.5 text-ink-faint">{row.line !== null && `line ${row.line}`}</td>
                <th scope="row" className="px-2 py-1.5 font-medium">
                  {row.name || row.mac}
                </th>
                <td className="px-2 py-1.5">{kinds[row.kind]}</td>
                <td className="w-full px-3 py-1.5">
                  {row.problems.length > 0 ? (
                    <span className="text-failed">{row.problems.join(' ')}</span>
                  ) : (
                    <span className="text-ink-soft">{row.changes.join(', ')}</span>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {plan.rows.length > rowsShownMax && (
        <p className="text-ink-soft text-xs">Only the first {rowsShownMax} are shown.</p>
      )}
    </div>
  )
}
