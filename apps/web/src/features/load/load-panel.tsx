'use client'

import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { ToggleGroup } from 'radix-ui'
import { type ReactNode, useId, useMemo, useState } from 'react'
import { Button } from '../../components/button'
import { TimeChart } from '../../components/charts/time-chart'
import type { Zoom } from '../../components/charts/use-time-plot'
import { EmptyState, ErrorState, LoadingState, Panel, Skeleton } from '../../components/page'
import { readableError, useTRPC } from '../../lib/trpc'
import { useNow } from '../../lib/use-now'
import { capacityText } from './capacity-text'
import { type Load, loadCharts } from './load-charts'
import { type LoadRange, rangeOfZoom, ranges } from './load-range'

/** Edges send a heartbeat each half minute. */
const refreshMs = 30_000
const capacityRefreshMs = 300_000

/** How much an edge works, over time, and how many more devices it carries. */
export function EdgeLoadPanel({ edgeId }: { edgeId: string }) {
  const trpc = useTRPC()
  const chosen = useRange()
  const query = useQuery(trpc.load.ofEdge.queryOptions({ edgeId, ...chosen.input }, chosen.queryOptions))
  return (
    <LoadPanel chosen={chosen} query={query} empty="This edge has reported nothing in this time.">
      <Capacity edgeId={edgeId} />
    </LoadPanel>
  )
}

/** How much the edges of a site work together. */
export function SiteLoadPanel({ siteId }: { siteId: string }) {
  const trpc = useTRPC()
  const chosen = useRange()
  const query = useQuery(trpc.load.ofSite.queryOptions({ siteId, ...chosen.input }, chosen.queryOptions))
  return <LoadPanel chosen={chosen} query={query} empty="No edge of this site has reported anything in this time." />
}

function useRange() {
  const [minutes, setMinutes] = useState<string>(ranges[2].value)
  const [zoom, setZoom] = useState<LoadRange | null>(null)
  return {
    minutes,
    isZoomed: zoom !== null,
    input: zoom ?? { rangeMinutes: Number(minutes) },
    queryOptions: { refetchInterval: zoom ? (false as const) : refreshMs, placeholderData: keepPreviousData },
    onRange: (value: string) => {
      setMinutes(value)
      setZoom(null)
    },
    onZoom: (next: Zoom | null) => setZoom(next && rangeOfZoom(next, Date.now())),
  }
}

interface LoadPanelProps {
  chosen: ReturnType<typeof useRange>
  query: { data: Load | undefined; error: unknown; refetch: () => unknown }
  empty: string
  children?: ReactNode
}

function LoadPanel({ chosen, query: { data, error, refetch }, empty, children }: LoadPanelProps) {
  return (
    <Panel
      title="Load"
      aside={
        <>
          {chosen.isZoomed && (
            <Button small look="bare" onClick={() => chosen.onZoom(null)}>
              Reset zoom
            </Button>
          )}
          <RangeChoice value={chosen.isZoomed ? '' : chosen.minutes} onChange={chosen.onRange} />
        </>
      }
    >
      <div className="flex flex-col gap-5">
        {children}
        {data ? (
          <Charts load={data} empty={empty} onZoom={chosen.onZoom} />
        ) : error ? (
          <ErrorState title="Could not load the charts." text={readableError(error)} onRetry={refetch} />
        ) : (
          <LoadingState label="Loading the load">
            <Skeleton className="h-56 w-full" />
          </LoadingState>
        )}
      </div>
    </Panel>
  )
}

function Charts({ load, empty, onZoom }: { load: Load; empty: string; onZoom: (zoom: Zoom | null) => void }) {
  const syncKey = useId()
  const charts = useMemo(() => loadCharts(load), [load])
  if (load.points.length === 0) return <EmptyState title="No measurements." text={empty} />
  return (
    <div className="grid gap-x-8 gap-y-6 lg:grid-cols-2">
      {charts.map((chart) => (
        <TimeChart key={chart.title} chart={chart} syncKey={syncKey} onZoom={onZoom} />
      ))}
    </div>
  )
}

function RangeChoice({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  return (
    <ToggleGroup.Root
      type="single"
      aria-label="Range"
      value={value}
      // The group reports '' when the chosen one is pressed again: it stays chosen.
      onValueChange={(next) => next !== '' && onChange(next)}
      className="inline-flex rounded-md border border-line p-0.5"
    >
      {ranges.map((range) => (
        <ToggleGroup.Item
          key={range.value}
          value={range.value}
          aria-label={range.name}
          className="rounded px-2 py-0.5 text-ink-faint hover:text-ink data-[state=on]:bg-hover data-[state=on]:text-ink"
        >
          {range.label}
        </ToggleGroup.Item>
      ))}
    </ToggleGroup.Root>
  )
}

function Capacity({ edgeId }: { edgeId: string }) {
  const trpc = useTRPC()
  const now = useNow(capacityRefreshMs)
  const { data } = useQuery(trpc.load.capacity.queryOptions({ edgeId }, { refetchInterval: capacityRefreshMs }))
  if (!data) return null
  const { estimate, basis } = capacityText(data, now)
  return (
    <div className="flex flex-col gap-0.5">
      <p className="font-medium text-ink text-sm">{estimate}</p>
      <p className="max-w-prose text-ink-soft text-xs">{basis}</p>
    </div>
  )
}
