'use client'

import { keepPreviousData, useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { ErrorState, LoadingState, Page, PageHeader, Skeleton } from '../../components/page'
import { countOf } from '../../lib/format-quantity'
import { type RouterOutputs, readableError, useTRPC } from '../../lib/trpc'
import { useUrlFilters } from '../../lib/use-url-filters'
import { heartbeatRefreshMs } from '../edges/heartbeat-refresh'
import { BootingNow, SitesAndEdges } from './booting-now'
import { FirstRunGuide } from './first-run-guide'
import { type Scope, scopeOf, scopeShape } from './overview-scope'
import { DemoHistoryTag, PlaceBoots, PlaceHead } from './place-figures'
import { ScopeSwitch } from './scope-switch'

type OverviewData = RouterOutputs['overview']['get']

export function OverviewPage() {
  const trpc = useTRPC()
  const { filters, bind, setFilters } = useUrlFilters(scopeShape)
  const scope = scopeOf(filters)
  const overview = useQuery(
    trpc.overview.get.queryOptions(scope, {
      refetchInterval: heartbeatRefreshMs,
      placeholderData: keepPreviousData,
    }),
  )
  const choice = <ScopeSwitch scope={scope} site={bind('site')} onFarm={(farm) => setFilters({ farm, site: '' })} />
  if (overview.data) return <Overview overview={overview.data} scope={scope} choice={choice} />
  if (!overview.error) return <OverviewSkeleton />
  return (
    <Page>
      <PageHeader title="Overview" actions={choice} />
      <ErrorState
        title="Could not load the overview."
        text={readableError(overview.error)}
        onRetry={() => overview.refetch()}
      />
    </Page>
  )
}

function Overview({ overview, scope, choice }: { overview: OverviewData; scope: Scope; choice: ReactNode }) {
  const { farm, site, counts, last24Hours } = overview
  const summary = `${countOf(counts.sites, 'site')}, ${countOf(counts.collections, 'collection')}, ${countOf(counts.devices, 'device')}, ${countOf(counts.vdisks, 'vDisk')}`
  return (
    <Page>
      <PageHeader
        title={site?.name ?? farm?.name ?? 'Overview'}
        tags={last24Hours.generatedCount > 0 && <DemoHistoryTag />}
        summary={scope.farmId || scope.siteId ? summary : `All farms: ${summary}`}
        actions={choice}
      />
      <FirstRunGuide />
      <PlaceHead place={overview} scope={scope} />
      <div className="grid items-start gap-5 xl:grid-cols-[1fr_360px]">
        <BootingNow scope={scope} count={counts.bootsBooting} />
        <SitesAndEdges scope={scope} />
      </div>
      <PlaceBoots place={overview} scope={scope} />
    </Page>
  )
}

function OverviewSkeleton() {
  return (
    <LoadingState label="Loading the overview">
      <Page>
        <Skeleton className="h-7 w-56" />
        <Skeleton className="h-20 w-full rounded-lg" />
        <div className="grid gap-5 xl:grid-cols-[1fr_360px]">
          <Skeleton className="h-64 rounded-lg" />
          <Skeleton className="h-64 rounded-lg" />
        </div>
        <Skeleton className="h-72 w-full rounded-lg" />
      </Page>
    </LoadingState>
  )
}
