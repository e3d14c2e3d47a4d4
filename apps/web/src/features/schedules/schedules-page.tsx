'use client'

import { useInfiniteQuery } from '@tanstack/react-query'
import Link from 'next/link'
import { Instant } from '../../components/instant'
import { Page, PageHeader } from '../../components/page-header'
import { PagedList } from '../../components/paged-list'
import { Unknown } from '../../components/panel'
import { EmptyState } from '../../components/states'
import type { Column } from '../../components/table'
import { Tag } from '../../components/tag'
import { useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'
import { RunTag } from './run-tags'
import type { ScheduleSummary } from './schedule-types'
import { whenWords } from './schedule-words'

const columns: Column<ScheduleSummary>[] = [
  {
    title: 'Name',
    cell: (schedule) => (
      <Link
        prefetch={false}
        href={`/schedules/${schedule.id}`}
        className="rounded font-medium text-ink underline-offset-4 hover:underline"
      >
        {schedule.name}
      </Link>
    ),
  },
  {
    title: 'When',
    wide: true,
    from: 'sm',
    cell: (schedule) => (
      <>
        {whenWords(schedule.when)}{' '}
        <span className="text-ink-faint text-xs">{schedule.timeZone.replaceAll('_', ' ')}</span>
      </>
    ),
  },
  {
    title: 'Site',
    from: 'lg',
    cell: ({ siteName, farmName }) => siteName ?? `all sites of ${farmName}`,
  },
  {
    title: 'Next run',
    cell: ({ enabled, nextInstant }) =>
      nextInstant ? <Instant at={nextInstant} /> : <Tag>{enabled ? 'Completed' : 'Disabled'}</Tag>,
  },
  {
    title: 'Last run',
    from: 'md',
    cell: ({ id, lastRun }) =>
      lastRun ? (
        <Link
          prefetch={false}
          href={`/schedules/${id}/runs/${lastRun.id}`}
          className="inline-flex items-center gap-2 rounded"
        >
          <RunTag run={lastRun} />
          <Instant at={lastRun.instant} />
        </Link>
      ) : (
        <Unknown label="none" />
      ),
  },
]

export function SchedulesPage() {
  const mayCreate = useMay('schedule.change')
  const query = useInfiniteQuery(
    useTRPC().schedule.list.infiniteQueryOptions({}, { getNextPageParam: (page) => page.nextCursor }),
  )
  return (
    <Page>
      <PageHeader
        title="Schedules"
        summary="Edges run schedules even when the control plane is offline."
        actions={
          mayCreate && (
            <Link
              href="/schedules/new"
              className="inline-flex h-8 items-center rounded-md bg-ink px-3 font-medium text-canvas text-sm hover:opacity-90"
            >
              New schedule
            </Link>
          )
        }
      />
      <div className="rounded-lg border border-line bg-surface">
        <PagedList
          label="Schedules"
          query={query}
          columns={columns}
          rowKey={(schedule) => schedule.id}
          empty={
            <EmptyState
              title="No schedules yet."
              text="Power on devices at set times, at a limited rate. For example, start a classroom before its first lesson."
            />
          }
        />
      </div>
    </Page>
  )
}
