'use client'

import { TextLink } from '../../components/button'
import { Table } from '../../components/table'
import { formatDuration } from '../../lib/format-quantity'
import { formatInstant } from '../../lib/format-time'
import { countText } from './count-text'
import { bootsHref, type ExploreFilters, filtersOfBox } from './explore-inputs'
import { boxOfRange, type Exploration } from './heat-layout'

/** The cells of the heat map that have boots, the newest first; each count leads to its boots. */
export function HeatTable({ exploration, filters }: { exploration: Exploration; filters: ExploreFilters }) {
  const { cells, sample, since, until } = exploration
  const now = new Date()
  const rows = cells.counts
    .map((count, index) => {
      const cell = { step: cells.steps[index] ?? 0, bin: cells.bins[index] ?? 0 }
      return { key: `${cell.step} ${cell.bin}`, count, box: boxOfRange(exploration, { from: cell, until: cell }) }
    })
    .reverse()
  return (
    <div className="max-h-96 overflow-y-auto rounded-md border border-line">
      <Table
        label="Boots by start and duration, as a table"
        rows={rows}
        rowKey={({ key }) => key}
        columns={[
          { title: 'From', cell: ({ box }) => formatInstant(new Date(box.sinceMs), now) },
          {
            title: 'Took',
            wide: true,
            cell: ({ box: { minUs, maxUs } }) =>
              maxUs === null
                ? `${formatDuration(minUs)} or longer`
                : `${formatDuration(minUs)} to ${formatDuration(maxUs + 1)}`,
          },
          {
            title: 'Boots',
            align: 'right',
            cell: ({ box, count }) => (
              <TextLink href={bootsHref(filters, { since, until }, filtersOfBox(box, filters, { since, until }))}>
                {countText(count, sample.share)}
              </TextLink>
            ),
          },
        ]}
      />
    </div>
  )
}
