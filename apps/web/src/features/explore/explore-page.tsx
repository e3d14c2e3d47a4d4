'use client'

import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useId, useMemo, useState } from 'react'
import { Button, LinkButton } from '../../components/button'
import { TimeChart } from '../../components/charts/time-chart'
import type { Zoom } from '../../components/charts/use-time-plot'
import { SelectFilter } from '../../components/filter'
import { EmptyState, ErrorState, LoadingState, Page, PageHeader, Panel, Skeleton } from '../../components/page'
import { useFirstPaint } from '../../lib/first-paint'
import { readableError, useTRPC } from '../../lib/trpc'
import { useUrlFilters } from '../../lib/use-url-filters'
import { BootFilterBar } from '../boots/boot-filter-bar'
import type { BootFilters } from '../boots/boot-filters'
import { HelpLink } from '../help/help-link'
import { helpTopics } from '../help/help-links'
import { groupOptions } from './attribute-text'
import { compareHref } from './compare-inputs'
import { sampleText } from './count-text'
import { DifferencesPanel } from './differences-panel'
import { exploreCharts } from './explore-charts'
import { ExploreFigures } from './explore-figures'
import { type Box, bootsHref, boxOf, exploreInput, exploreShape, textOfBox } from './explore-inputs'
import { GroupsPanel } from './groups-panel'
import type { Exploration } from './heat-layout'
import { HeatMap } from './heat-map'
import { HeatTable } from './heat-table'
import { PhaseStack } from './phase-stack'
import { Promotions } from './promotions'
import { SavedViews } from './saved-views'

type Url = ReturnType<typeof useUrlFilters<typeof exploreShape>>

export function ExplorePage() {
  const url = useUrlFilters(exploreShape)
  const { filters, bind } = url
  const paint = useFirstPaint()
  // biome-ignore lint/correctness/useExhaustiveDependencies: the boots of the first paint stay until a filter changes
  const input = useMemo(() => exploreInput(filters, paint ? new Date(paint.now) : new Date()), [filters])
  const query = useQuery(useTRPC().explore.get.queryOptions(input, { placeholderData: keepPreviousData }))
  const { data } = query
  return (
    <Page>
      <PageHeader
        title="Explore"
        summary={data && <p>{sampleText(data.sample)}</p>}
        actions={
          <>
            <HelpLink to={helpTopics.explore}>How to find slow boots</HelpLink>
            <SavedViews />
            <LinkButton href={compareHref({ set: setOf(filters), base: setOf(filters) })}>Compare</LinkButton>
            {data && <LinkButton href={bootsHref(filters, data)}>View these boots</LinkButton>}
          </>
        }
      />
      <BootFilterBar {...url} firstPeriod="Last 7 days">
        <SelectFilter label="Group" first="Group: none" options={groupOptions} {...bind('by')} />
      </BootFilterBar>
      {data ? (
        <ExploreBody exploration={data} input={input} url={url} />
      ) : query.error ? (
        <ErrorState
          title="Could not read the boots."
          text={readableError(query.error)}
          onRetry={() => query.refetch()}
        />
      ) : (
        <LoadingState label="Reading the boots">
          <div className="flex flex-col gap-5">
            <Skeleton className="h-96 w-full rounded-lg" />
            <Skeleton className="h-64 w-full rounded-lg" />
          </div>
        </LoadingState>
      )}
    </Page>
  )
}

/** Without the box and the group, which sets of boots do not have. */
function setOf({ box: _box, by: _by, sort: _sort, ...filters }: Url['filters']): BootFilters {
  return filters
}

interface ExploreBodyProps {
  exploration: Exploration
  input: ReturnType<typeof exploreInput>
  url: Url
}

function ExploreBody({ exploration, input, url: { filters, setFilter, setFilters } }: ExploreBodyProps) {
  const [isTable, setIsTable] = useState(false)
  const box = useMemo(() => boxOf(filters.box), [filters.box])
  const onBox = (next: Box | null) => setFilter('box', next ? textOfBox(next) : '')
  const onZoom = (zoom: Zoom | null) => setFilters(spanFilters(zoom))
  if (exploration.total.bootCount === 0) return <NoBoots share={exploration.sample.share} />
  return (
    <>
      <ExploreFigures exploration={exploration} filters={filters} />
      <Panel
        title="Boots by start and duration"
        aside={
          <Button small look="bare" aria-pressed={isTable} onClick={() => setIsTable(!isTable)}>
            Table
          </Button>
        }
      >
        <div className="flex flex-col gap-3">
          {isTable ? (
            <HeatTable exploration={exploration} filters={filters} />
          ) : (
            <HeatMap exploration={exploration} box={box} onBox={onBox} />
          )}
          <Promotions promotions={exploration.promotions} />
        </div>
      </Panel>
      {box && (
        <DifferencesPanel
          box={box}
          filters={filters}
          input={input}
          span={exploration}
          onZoom={() => onZoom({ from: box.sinceMs / 1000, until: box.untilMs / 1000 })}
          onClear={() => onBox(null)}
        />
      )}
      <Panel
        title="Over time"
        aside={
          (filters.since || filters.until) && (
            <Button small look="bare" onClick={() => onZoom(null)}>
              Reset zoom
            </Button>
          )
        }
      >
        <Charts exploration={exploration} by={filters.by} onZoom={onZoom} />
      </Panel>
      {filters.by && (
        <GroupsPanel exploration={exploration} by={filters.by} filters={filters} onOnly={(only) => setFilters(only)} />
      )}
    </>
  )
}

function NoBoots({ share }: { share: number }) {
  const text =
    share < 1
      ? 'None is in the sample that was read. Filter by a site or a vDisk, or choose a shorter period.'
      : 'Clear a filter or choose a longer period.'
  return <EmptyState title="No boots match these filters." text={text} />
}

interface ChartsProps {
  exploration: Exploration
  by: Url['filters']['by']
  onZoom: (zoom: Zoom | null) => void
}

function Charts({ exploration, by, onZoom }: ChartsProps) {
  const syncKey = useId()
  const charts = useMemo(() => exploreCharts(exploration, by), [exploration, by])
  return (
    <div className="grid gap-x-8 gap-y-6 lg:grid-cols-2">
      {charts.map((chart) => (
        <TimeChart key={chart.title} chart={chart} syncKey={syncKey} onZoom={onZoom} />
      ))}
      <PhaseStack exploration={exploration} />
    </div>
  )
}

/** The API takes no span of less. */
const zoomMinMs = 60_000

function spanFilters(zoom: Zoom | null) {
  if (!zoom) return { since: '', until: '', period: '' }
  const [from, until] = [zoom.from * 1000, zoom.until * 1000]
  const instant = (ms: number) => new Date(Math.round(ms)).toISOString()
  return { since: instant(from), until: instant(Math.max(until, from + zoomMinMs)), period: '' }
}
