'use client'

import { useCallback, useMemo } from 'react'
import { Button, LinkButton } from '../../components/button'
import { FilterBar, SelectFilter } from '../../components/filter'
import { Icon } from '../../components/icon'
import { ObjectFilter } from '../../components/object-picker'
import { ErrorState, LoadingState, Page, PageHeader, Panel, Skeleton } from '../../components/page'
import { formatCount } from '../../lib/format-quantity'
import { formatInstantInFull } from '../../lib/format-time'
import { readableError } from '../../lib/trpc'
import { useNow } from '../../lib/use-now'
import { usePicker } from '../../lib/use-picker'
import { useUrlFilters } from '../../lib/use-url-filters'
import { HelpLink } from '../help/help-link'
import { helpTopics } from '../help/help-links'
import { MissingEdgesOf } from '../schedules/missing-edges'
import { useIsWall } from '../shell/use-wall'
import { estimate, firstAndLastReady, totalsOf } from './storm-figures'
import { periodOptions, stormInput, stormShape } from './storm-inputs'
import { StormLegend } from './storm-legend'
import { StormMap } from './storm-map'
import type { Storm } from './storm-model'
import { EdgesPanel, ReadyPanels, StragglersPanel } from './storm-panels'
import { StormTable } from './storm-table'
import { estimateText, summaryText } from './storm-text'
import { type StormView, viewOf } from './storm-view'
import { StormWall } from './storm-wall'
import { useStorm } from './use-storm'
import { useWindowHeight } from './use-window-height'

const clockMs = 1000
const mapShare = 0.5
const mapHeightMin = 240

type Filters = ReturnType<typeof useUrlFilters<typeof stormShape>>

export function StormPage() {
  const url = useUrlFilters(stormShape)
  const input = useMemo(() => stormInput(url.filters), [url.filters])
  const { query, model, offsetMs } = useStorm(input)
  const isWall = useIsWall()
  const nowMs = useNow(clockMs).getTime() + offsetMs
  const { setFilter } = url
  const onLeave = useCallback(() => {
    if (document.fullscreenElement) void document.exitFullscreen()
    setFilter('wall', '')
  }, [setFilter])
  const onEnter = useCallback(() => {
    setFilter('wall', 'on')
    // A browser that refuses shows the wall in its window.
    void document.documentElement.requestFullscreen?.().catch(() => undefined)
  }, [setFilter])
  const view = model && viewOf(model, { nowMs, byPhase: url.filters.order === 'phase' })
  const run = model?.storm.run
  if (view && isWall) return <StormWall view={view} title={titleOf(model.storm)} onLeave={onLeave} />
  return (
    <Page>
      <PageHeader
        title={model ? titleOf(model.storm) : 'Storm'}
        summary={view && <p>{summaryText(totalsOf(view.cells))}</p>}
        actions={
          <>
            <HelpLink to={helpTopics.storm}>How to read a storm</HelpLink>
            {run && <LinkButton href={`/schedules/${run.scheduleId}/runs/${run.id}`}>View the run</LinkButton>}
            <Button onClick={onEnter}>
              <Icon name="fullScreen" size={14} />
              Full screen
            </Button>
          </>
        }
      />
      {run && <MissingEdgesOf runId={run.id} />}
      <StormFilters url={url} />
      {view ? (
        <StormBody view={view} storm={model.storm} url={url} />
      ) : query.error ? (
        <ErrorState
          title="Could not load the storm."
          text={readableError(query.error)}
          onRetry={() => query.refetch()}
        />
      ) : (
        <StormSkeleton />
      )}
    </Page>
  )
}

function titleOf({ farm, site, collection, run }: Storm): string {
  if (run) return `Run of ${run.name}, ${formatInstantInFull(new Date(run.instant))}`
  const name = collection?.name ?? site?.name ?? farm?.name
  return name ? `Storm: ${name}` : 'Storm'
}

/** A run has its own devices and its own time. */
function StormFilters({ url: { filters, bind, setFilters, clearFilters } }: { url: Filters }) {
  const { farm, site, collection, run } = filters
  const farms = usePicker('farm', {})
  const sites = usePicker('site', farm ? { farmId: farm } : {})
  const collections = usePicker('collection', site ? { siteId: site } : {})
  const chosen = (value: string | undefined, label: string) => (value ? { value, label } : null)
  const isScoped = Boolean(farm ?? site ?? collection ?? run ?? filters.period ?? filters.order ?? filters.view)
  return (
    <FilterBar onClear={isScoped ? clearFilters : undefined}>
      {!run && (
        <>
          <ObjectFilter
            label="Farm"
            picker={farms}
            value={farm}
            chosen={chosen(farm, 'Selected farm')}
            onChange={(value) => setFilters({ farm: value, site: '', collection: '' })}
          />
          <ObjectFilter
            label="Site"
            picker={sites}
            value={site}
            chosen={chosen(site, 'Selected site')}
            onChange={(value) => setFilters({ site: value, collection: '' })}
          />
          <ObjectFilter
            label="Collection"
            picker={collections}
            chosen={chosen(collection, 'Selected collection')}
            {...bind('collection')}
          />
          <SelectFilter label="Period" first="Last hour" options={periodOptions} {...bind('period')} />
        </>
      )}
      <SelectFilter
        label="Order"
        first="By site and name"
        options={[{ value: 'phase', label: 'By phase' }]}
        {...bind('order')}
      />
      <SelectFilter label="View" first="Cells" options={[{ value: 'table', label: 'Table' }]} {...bind('view')} />
    </FilterBar>
  )
}

function StormBody({ view, storm, url }: { view: StormView; storm: Storm; url: Filters }) {
  const { cells, counts, slowKeys, nowMs, kinds, stragglers } = view
  const heightPx = Math.max(mapHeightMin, useWindowHeight() * mapShare)
  const left = estimateText(estimate(cells, kinds, nowMs))
  const { first, last } = useMemo(() => firstAndLastReady(cells), [cells])
  const isTable = url.filters.view === 'table'
  return (
    <>
      <Panel title="Devices" flush={isTable} aside={<DeviceCount storm={storm} />}>
        {isTable ? (
          <StormTable cells={cells} slowKeys={slowKeys} nowMs={nowMs} />
        ) : (
          <div className="flex flex-col gap-4">
            <StormMap cells={cells} slowKeys={slowKeys} nowMs={nowMs} heightPx={heightPx} />
            <StormLegend counts={counts} slowCount={slowKeys.size} />
          </div>
        )}
      </Panel>
      <div className="grid items-start gap-5 lg:grid-cols-2">
        <div className="flex min-w-0 flex-col gap-5">
          <Panel title="Time left">
            <p className="font-semibold text-ink text-xl tracking-tight">{left.value}</p>
            <p className="mt-0.5 text-ink-soft text-sm">{left.basis}</p>
          </Panel>
          <EdgesPanel edges={storm.edges} />
        </div>
        <StragglersPanel stragglers={stragglers} />
      </div>
      <ReadyPanels first={first} last={last} />
    </>
  )
}

function DeviceCount({ storm: { deviceCount, cells } }: { storm: Storm }) {
  const shown = cells.names.length
  return shown < deviceCount ? (
    <span>
      the {formatCount(shown)} of {formatCount(deviceCount)} that booted last
    </span>
  ) : (
    <span>{formatCount(deviceCount)}</span>
  )
}

function StormSkeleton() {
  return (
    <LoadingState label="Loading the storm">
      <div className="flex flex-col gap-5">
        <Skeleton className="h-80 w-full rounded-lg" />
        <div className="grid gap-5 lg:grid-cols-2">
          <Skeleton className="h-48 rounded-lg" />
          <Skeleton className="h-48 rounded-lg" />
        </div>
      </div>
    </LoadingState>
  )
}
