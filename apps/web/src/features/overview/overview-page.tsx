'use client'

import { useQuery } from '@tanstack/react-query'
import { Page, PageHeader } from '../../components/page-header'
import { Panel } from '../../components/panel'
import { ErrorState, LoadingState, Skeleton } from '../../components/states'
import { Tag } from '../../components/tag'
import { countOf } from '../../lib/format-quantity'
import { readableError } from '../../lib/readable-error'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { heartbeatRefreshMs } from '../edges/heartbeat-refresh'
import { BootingNow } from './booting-now'
import { DayChart } from './day-chart'
import { Figures } from './figures'
import { FirstRunGuide } from './first-run-guide'
import { LatestBoots } from './latest-boots'
import { SitesAndEdges } from './sites-and-edges'

type FarmOverview = RouterOutputs['farm']['overview']

export function OverviewPage() {
  const trpc = useTRPC()
  const farms = useQuery(trpc.farm.list.queryOptions({ limit: 1 }))
  const farmId = farms.data?.items[0]?.id
  const overview = useQuery(
    trpc.farm.overview.queryOptions(
      { farmId: farmId ?? '' },
      { enabled: farmId !== undefined, refetchInterval: heartbeatRefreshMs },
    ),
  )
  if (overview.data) return <Overview overview={overview.data} />
  if (farms.data && farmId === undefined) {
    return (
      <Page>
        <PageHeader title="Overview" summary="Nothing is here yet." />
        <FirstRunGuide />
      </Page>
    )
  }
  const failed = farms.error ?? overview.error
  if (!failed) return <OverviewSkeleton />
  return (
    <ErrorState
      title="The overview could not be loaded."
      text={readableError(failed)}
      onRetry={() => (farms.error ? farms.refetch() : overview.refetch())}
    />
  )
}

function Overview({ overview }: { overview: FarmOverview }) {
  const { farm, counts, byDay, last24Hours } = overview
  return (
    <Page>
      <PageHeader
        title={farm.name}
        tags={last24Hours.generatedCount > 0 && <DemoHistoryTag />}
        summary={`${countOf(counts.sites, 'site')}, ${countOf(counts.collections, 'collection')}, ${countOf(counts.devices, 'device')}, ${countOf(counts.vdisks, 'vDisk')}`}
      />
      <FirstRunGuide />
      <Figures counts={counts} last24Hours={last24Hours} />
      <div className="grid items-start gap-5 xl:grid-cols-[1fr_360px]">
        <BootingNow />
        <SitesAndEdges farmId={farm.id} />
      </div>
      <Panel title="Boots of the last 30 days" aside={<HistoryTag byDay={byDay} />}>
        <DayChart days={byDay} />
      </Panel>
      <LatestBoots boots={overview.recentBoots} />
    </Page>
  )
}

function HistoryTag({ byDay }: { byDay: FarmOverview['byDay'] }) {
  if (byDay.every(({ generatedCount }) => generatedCount === 0)) return <span>days in UTC</span>
  return (
    <>
      <span className="max-sm:hidden">days in UTC</span>
      <DemoHistoryTag />
    </>
  )
}

function DemoHistoryTag() {
  return <Tag title="Made by the demo’s history generator; it never happened.">includes demo history</Tag>
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
