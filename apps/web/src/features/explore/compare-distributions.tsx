'use client'

import { useState } from 'react'
import { Button } from '../../components/button'
import { Panel } from '../../components/page'
import { Table } from '../../components/table'
import { formatDuration } from '../../lib/format-quantity'
import type { Comparison } from './compare-text'
import { labelEvery } from './heat-layout'

const heightPx = 96
const labelsMax = 8

interface Bin {
  fromUs: number
  untilUs: number | null
  base: number
  set: number
}

/** The durations of ready boots of both sets, one above the other, as shares of each. */
export function CompareDistributions({ comparison }: { comparison: Comparison }) {
  const [isTable, setIsTable] = useState(false)
  const bins = binsOf(comparison)
  const most = Math.max(...bins.flatMap(({ base, set }) => [base, set]))
  return (
    <Panel
      title="Durations of ready boots"
      aside={
        <Button small look="bare" aria-pressed={isTable} onClick={() => setIsTable(!isTable)}>
          Table
        </Button>
      }
    >
      {isTable ? (
        <BinTable bins={bins} />
      ) : (
        <div className="flex flex-col gap-3">
          <Histogram
            title="Baseline"
            shares={bins.map(({ base }) => base)}
            most={most}
            colour="var(--chart-c)"
            bins={bins}
          />
          <Histogram
            title="These boots"
            shares={bins.map(({ set }) => set)}
            most={most}
            colour="var(--chart-a)"
            bins={bins}
          />
          <Axis bins={bins} />
        </div>
      )}
    </Panel>
  )
}

function binsOf({ base, set, durationEdgesUs }: Comparison): Bin[] {
  const share = ({ durationCounts, figures }: Comparison['set'], index: number) =>
    figures.readyCount === 0 ? 0 : (durationCounts[index] ?? 0) / figures.readyCount
  return durationEdgesUs.map((fromUs, index) => ({
    fromUs,
    untilUs: durationEdgesUs[index + 1] ?? null,
    base: share(base, index),
    set: share(set, index),
  }))
}

interface HistogramProps {
  title: string
  shares: number[]
  most: number
  colour: string
  bins: Bin[]
}

function Histogram({ title, shares, most, colour, bins }: HistogramProps) {
  return (
    <figure aria-label={title} className="flex flex-col gap-1">
      <figcaption className="font-medium text-ink text-xs">{title}</figcaption>
      <div
        aria-hidden="true"
        className="flex items-end gap-px border-line-strong border-b"
        style={{ height: heightPx }}
      >
        {bins.map((bin, index) => (
          <span
            key={bin.fromUs}
            title={`${binText(bin)}: ${percentText(shares[index] ?? 0)}`}
            className="flex h-full min-w-0 flex-1 items-end hover:bg-hover"
          >
            <span
              className="block w-full rounded-t-xs"
              style={{ background: colour, height: most === 0 ? 0 : ((shares[index] ?? 0) / most) * heightPx }}
            />
          </span>
        ))}
      </div>
    </figure>
  )
}

function Axis({ bins }: { bins: Bin[] }) {
  const every = labelEvery(bins.length, labelsMax)
  return (
    <div aria-hidden="true" className="relative h-4 text-2xs text-ink-faint">
      {bins.map(({ fromUs }, index) =>
        index % every === 0 ? (
          <span key={fromUs} className="absolute whitespace-nowrap" style={{ left: `${(index / bins.length) * 100}%` }}>
            {fromUs === 0 ? '0' : formatDuration(fromUs)}
          </span>
        ) : null,
      )}
    </div>
  )
}

function BinTable({ bins }: { bins: Bin[] }) {
  return (
    <div className="max-h-80 overflow-y-auto rounded-md border border-line">
      <Table
        label="Durations of ready boots, as a table"
        rows={bins.filter(({ base, set }) => base + set > 0)}
        rowKey={({ fromUs }) => String(fromUs)}
        columns={[
          { title: 'Took', wide: true, cell: binText },
          { title: 'Baseline', align: 'right', cell: ({ base }) => percentText(base) },
          { title: 'These boots', align: 'right', cell: ({ set }) => percentText(set) },
        ]}
      />
    </div>
  )
}

function binText({ fromUs, untilUs }: Bin): string {
  return untilUs === null
    ? `${formatDuration(fromUs)} or longer`
    : `${formatDuration(fromUs)} to ${formatDuration(untilUs)}`
}

function percentText(share: number): string {
  return `${(share * 100).toFixed(1)}\u00a0%`
}
