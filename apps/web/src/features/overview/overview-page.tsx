'use client'

import { keepPreviousData, useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Banner } from '../../components/banner'
import { EmptyState, ErrorState, LoadingState, Page, PageHeader, Panel, Skeleton } from '../../components/page'
import { PageLink } from '../../components/page-link'
import { Table } from '../../components/table'
import { Dot, Tag } from '../../components/tag'
import { countOf } from '../../lib/format-quantity'
import { type RouterOutputs, readableError, useTRPC } from '../../lib/trpc'
import { useUrlFilters } from '../../lib/use-url-filters'
import { BarLegend, barScaleUs } from '../boots/boot-bar'
import { bootColumns } from '../boots/boot-columns'
import type { BootSummary } from '../boots/boot-types'
import { heartbeatRefreshMs } from '../edges/heartbeat-refresh'
import { BootingNow, SitesAndEdges } from './booting-now'
import { DayChart } from './day-chart'
import { FirstRunGuide } from './first-run-guide'
import { type Figure, figuresOf } from './overview-figures'
import { hrefIn, type Scope, scopeOf, scopeShape } from './overview-scope'
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
  const { farm, site, counts, byDay, last24Hours } = overview
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
      <KeyAlarms counts={counts} scope={scope} />
      <LostDevices counts={counts} scope={scope} />
      <Figures figures={figuresOf(overview, scope)} />
      <div className="grid items-start gap-5 xl:grid-cols-[1fr_360px]">
        <BootingNow scope={scope} count={counts.bootsBooting} />
        <SitesAndEdges scope={scope} />
      </div>
      <Panel title="Boots of the last 30 days" aside={<HistoryTag byDay={byDay} />}>
        <DayChart days={byDay} />
      </Panel>
      <LatestBoots boots={overview.recentBoots} scope={scope} />
    </Page>
  )
}

/** Leads to the devices whose key a person has to decide on. */
function KeyAlarms({ counts: { keyAlarms, keysWaiting }, scope }: Pick<OverviewData, 'counts'> & { scope: Scope }) {
  if (keyAlarms + keysWaiting === 0) return null
  const link = 'rounded underline underline-offset-4'
  return (
    <Banner label="Keys of devices" tone={keyAlarms > 0 ? 'failed' : 'silent'}>
      {keyAlarms > 0 && (
        <p>
          <PageLink href={hrefIn(scope, '/devices', { key: 'alarm' })} className={link}>
            {countOf(keyAlarms, 'device')}
          </PageLink>{' '}
          did not prove the known key of {keyAlarms === 1 ? 'its' : 'their'} TPM. What is private stays closed until you
          decide.
        </p>
      )}
      {keysWaiting > 0 && (
        <p>
          <PageLink href={hrefIn(scope, '/devices', { key: 'key_waits' })} className={link}>
            {countOf(keysWaiting, 'device')}
          </PageLink>{' '}
          {keysWaiting === 1 ? 'waits' : 'wait'} for approval of {keysWaiting === 1 ? 'its' : 'their'} key.
        </p>
      )}
    </Banner>
  )
}

/** Leads to the devices that stand still until somebody restarts them. */
function LostDevices({ counts: { devicesLost }, scope }: Pick<OverviewData, 'counts'> & { scope: Scope }) {
  if (devicesLost === 0) return null
  return (
    <Banner label="Devices without their disk" tone="failed">
      <p>
        <PageLink
          href={hrefIn(scope, '/devices', { waits: 'lost_disk' })}
          className="rounded underline underline-offset-4"
        >
          {countOf(devicesLost, 'device')}
        </PageLink>{' '}
        {devicesLost === 1 ? 'has lost its disk for good and waits' : 'have lost their disks for good and wait'} for a
        restart.
      </p>
    </Banner>
  )
}

function HistoryTag({ byDay }: { byDay: OverviewData['byDay'] }) {
  if (byDay.every(({ generatedCount }) => generatedCount === 0)) return <span>days in UTC</span>
  return (
    <>
      <span className="max-sm:hidden">days in UTC</span>
      <DemoHistoryTag />
    </>
  )
}

function DemoHistoryTag() {
  return <Tag title="Generated by the demo. This boot never happened.">includes demo history</Tag>
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

function LatestBoots({ boots, scope }: { boots: BootSummary[]; scope: Scope }) {
  return (
    <Panel
      title="Latest boots"
      flush
      aside={
        <PageLink href={hrefIn(scope, '/boots')} className="rounded underline-offset-4 hover:underline">
          All boots
        </PageLink>
      }
    >
      {boots.length === 0 ? (
        <EmptyState title="No boots yet." text="A boot appears here with its first packet." />
      ) : (
        <>
          <Table
            label="Latest boots"
            columns={bootColumns(barScaleUs(boots))}
            rows={boots}
            rowKey={(boot) => boot.id}
          />
          <BarLegend />
        </>
      )}
    </Panel>
  )
}

function Figures({ figures }: { figures: Figure[] }) {
  return (
    <ul
      aria-label="Figures"
      className="grid grid-cols-2 gap-px overflow-hidden rounded-lg border border-line bg-line sm:grid-cols-4 xl:grid-cols-7"
    >
      {figures.map(({ label, value, note, tone, href }) => (
        <li key={label} className="bg-surface">
          <PageLink href={href} className="block px-4 py-3 -outline-offset-2 hover:bg-hover">
            <span className="flex items-center gap-1.5 text-ink-faint text-xs">
              {tone && <Dot tone={tone} pulsing={tone === 'live'} />}
              {label}
            </span>
            <span className="mt-0.5 flex items-baseline gap-1.5">
              <span className="font-semibold text-ink text-xl tracking-tight">{value}</span>
              {note && <span className="truncate text-ink-faint text-xs">{note}</span>}
            </span>
          </PageLink>
        </li>
      ))}
    </ul>
  )
}
