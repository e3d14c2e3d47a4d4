'use client'

import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import Link from 'next/link'
import { Notice } from '../../components/field'
import { Instant } from '../../components/instant'
import { Page, PageHeader } from '../../components/page-header'
import { PagedList } from '../../components/paged-list'
import { Facts, Panel } from '../../components/panel'
import { EmptyState, LoadingState, Skeleton } from '../../components/states'
import type { Column } from '../../components/table'
import { Tag } from '../../components/tag'
import { countOf } from '../../lib/format-quantity'
import { useTRPC } from '../../lib/trpc'
import { HistoryPanel } from '../audit/history-panel'
import { useMay } from '../session/use-may'
import { PageName } from '../shell/breadcrumbs'
import { QueryError } from '../shell/query-error'
import { NextInstants } from './next-instants'
import { RunBar, RunTag } from './run-tags'
import { ScheduleActions } from './schedule-actions'
import { bareTarget } from './schedule-draft'
import { countsText, powerText, targetText, whenText } from './schedule-text'
import type { RunSummary, ScheduleDetail } from './schedule-types'

/** A run goes on although none of its boots says so. */
const refreshMs = 5_000

export function SchedulePage({ scheduleId }: { scheduleId: string }) {
  const query = useQuery(useTRPC().schedule.get.queryOptions({ scheduleId }, { refetchInterval: refreshMs }))
  if (query.data) return <Schedule schedule={query.data} />
  if (query.isPending) {
    return (
      <LoadingState label="Loading schedule">
        <Page>
          <Skeleton className="h-7 w-56" />
          <Skeleton className="h-80 w-full rounded-lg" />
        </Page>
      </LoadingState>
    )
  }
  return <QueryError noun="schedule" error={query.error} onRetry={() => query.refetch()} />
}

function Schedule({ schedule }: { schedule: ScheduleDetail }) {
  const { farmId, siteId, when, timeZone, targets, ratePerMinute, enabled } = schedule
  const mayChange = useMay('schedule.change', { farmId, siteId })
  return (
    <Page>
      <PageName name={schedule.name} />
      <PageHeader
        title={schedule.name}
        tags={!schedule.nextInstant && <Tag>{enabled ? 'Completed' : 'Disabled'}</Tag>}
        summary={`${whenText(when)}, ${timeZone.replaceAll('_', ' ')}`}
        actions={mayChange && <ScheduleActions schedule={schedule} />}
      />
      {schedule.wrongClocks.map(({ edgeId, name, offsetMs }) => (
        <Notice key={edgeId} tone="silent">
          The clock of {name} is {Math.round(Math.abs(offsetMs) / 1000)} s {offsetMs > 0 ? 'fast' : 'slow'}, so its
          devices start {offsetMs > 0 ? 'early' : 'late'} by the same amount. Synchronize the clock, preferably with
          NTP.
        </Notice>
      ))}
      {schedule.withheldAt.map((site) => (
        <Notice key={site.siteId} tone="silent">
          This schedule does not run at {site.siteName}. The schedules there name {site.namedCount.toLocaleString('en')}{' '}
          devices in total (each device counts once per schedule), but edges accept {site.limit.toLocaleString('en')},
          oldest schedules first. Name fewer devices or disable other schedules.
        </Notice>
      ))}
      <div className="grid items-start gap-5 lg:grid-cols-[1fr_360px]">
        <div className="flex min-w-0 flex-col gap-5">
          <Panel title="Details">
            <Facts
              facts={[
                { label: 'Devices', value: targets.map(targetText).join(', ') || 'none left' },
                { label: 'Site', value: schedule.siteName ?? `all sites of ${schedule.farmName}` },
                { label: 'Power-on method', value: powerText[schedule.power] },
                { label: 'Start rate', value: `${countOf(ratePerMinute, 'device')} per minute` },
              ]}
            />
          </Panel>
          <Runs scheduleId={schedule.id} />
        </div>
        {enabled ? (
          <NextInstants
            farmId={farmId}
            siteId={siteId}
            when={when}
            timeZone={timeZone}
            ratePerMinute={ratePerMinute}
            targets={targets.map(bareTarget)}
          />
        ) : (
          <Panel title="Next runs">
            <p className="text-ink-soft text-sm">This schedule is disabled. It runs again after you enable it.</p>
          </Panel>
        )}
      </div>
      <HistoryPanel objectId={schedule.id} />
    </Page>
  )
}

const columns: Column<RunSummary>[] = [
  {
    title: 'Scheduled',
    cell: (run) => (
      <Link
        prefetch={false}
        href={`/schedules/${run.scheduleId}/runs/${run.id}`}
        className="rounded font-medium text-ink underline-offset-4 hover:underline"
      >
        <Instant at={run.instant} />
      </Link>
    ),
  },
  {
    title: 'Status',
    cell: (run) => (
      <span className="inline-flex items-center gap-2">
        <RunTag run={run} />
        {run.byHand && <Tag>Manual</Tag>}
      </span>
    ),
  },
  { title: 'Devices', wide: true, from: 'md', cell: (run) => <RunBar run={run} /> },
  { title: 'Result', align: 'right', from: 'sm', cell: countsText },
]

function Runs({ scheduleId }: { scheduleId: string }) {
  const query = useInfiniteQuery(
    useTRPC().schedule.runs.infiniteQueryOptions(
      { scheduleId, limit: 20 },
      { getNextPageParam: (page) => page.nextCursor, refetchInterval: refreshMs },
    ),
  )
  return (
    <Panel title="Runs" flush>
      <PagedList
        label="Runs"
        query={query}
        columns={columns}
        rowKey={(run) => run.id}
        empty={<EmptyState title="No runs yet." text="Each run appears here with the boots of its devices." />}
      />
    </Panel>
  )
}
