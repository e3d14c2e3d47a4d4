'use client'

import { useInfiniteQuery } from '@tanstack/react-query'
import Link from 'next/link'
import { LinkButton, ObjectLink } from '../../components/button'
import { Instant } from '../../components/instant'
import { Unknown } from '../../components/page'
import { ListPage } from '../../components/paged-list'
import type { Column } from '../../components/table'
import { Tag } from '../../components/tag'
import { nextPage, useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'
import { RunTag } from './run-tags'
import { SchedulePlace } from './schedule-place'
import { whenText } from './schedule-text'
import type { ScheduleSummary } from './schedule-types'

const columns: Column<ScheduleSummary>[] = [
  {
    title: 'Name',
    cell: (schedule) => <ObjectLink href={`/schedules/${schedule.id}`}>{schedule.name}</ObjectLink>,
  },
  {
    title: 'When',
    wide: true,
    from: 'sm',
    cell: (schedule) => (
      <>
        {whenText(schedule.when)}{' '}
        <span className="text-ink-faint text-xs">{schedule.timeZone.replaceAll('_', ' ')}</span>
      </>
    ),
  },
  {
    title: 'Site',
    from: 'lg',
    cell: (schedule) => <SchedulePlace quiet schedule={schedule} />,
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
  const query = useInfiniteQuery(useTRPC().schedule.list.infiniteQueryOptions({}, nextPage))
  return (
    <ListPage
      title="Schedules"
      summary="Edges run schedules even when the control plane is offline."
      actions={
        mayCreate && (
          <LinkButton href="/schedules/new" look="primary">
            New schedule
          </LinkButton>
        )
      }
      query={query}
      columns={columns}
      empty={{
        title: 'No schedules yet.',
        text: 'Power on devices at set times, at a limited rate. For example, start a classroom before its first lesson.',
      }}
    />
  )
}
