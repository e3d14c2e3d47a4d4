'use client'

import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import Link from 'next/link'
import { useState } from 'react'
import { SelectFilter } from '../../components/filter'
import { Instant } from '../../components/instant'
import { Page, PageHeader } from '../../components/page-header'
import { PagedList } from '../../components/paged-list'
import { Facts, Panel, Unknown } from '../../components/panel'
import { EmptyState, LoadingState, Skeleton } from '../../components/states'
import type { Column } from '../../components/table'
import { countOf } from '../../lib/format-quantity'
import { formatInstantInFull } from '../../lib/format-time'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { BootDuration } from '../boots/boot-duration'
import { PageName } from '../shell/breadcrumbs'
import { QueryError } from '../shell/query-error'
import { DeviceTag, RunBar, RunTag } from './run-tags'
import { RunTimeline } from './run-timeline'
import { countsText, deviceStateText, powerText, reasonText } from './schedule-text'
import type { RunDevice } from './schedule-types'

type RunDetail = RouterOutputs['schedule']['run']

const refreshMs = 3_000

export function RunPage({ runId }: { runId: string }) {
  const query = useQuery(useTRPC().schedule.run.queryOptions({ runId }, { refetchInterval: refreshMs }))
  if (query.data) return <Run run={query.data} />
  if (query.isPending) {
    return (
      <LoadingState label="Loading run">
        <Page>
          <Skeleton className="h-7 w-56" />
          <Skeleton className="h-80 w-full rounded-lg" />
        </Page>
      </LoadingState>
    )
  }
  return <QueryError noun="run" error={query.error} onRetry={() => query.refetch()} />
}

function Run({ run }: { run: RunDetail }) {
  const at = new Date(run.instant)
  return (
    <Page>
      <PageName name={run.scheduleName} />
      <PageHeader
        title={`Run of ${run.scheduleName}`}
        tags={<RunTag run={run} />}
        summary={
          <Link href={`/schedules/${run.scheduleId}`} className="underline underline-offset-2">
            View schedule
          </Link>
        }
      />
      <Panel title="Run">
        <div className="flex flex-col gap-4">
          <RunBar run={run} />
          <Facts
            facts={[
              { label: 'Scheduled', value: formatInstantInFull(at, run.timeZone) },
              { label: 'Your time', value: formatInstantInFull(at) },
              { label: 'Started', value: run.startedAt ? <Instant at={run.startedAt} full /> : null },
              { label: 'Result', value: countsText(run) },
              ...(run.reason ? [{ label: 'Reason', value: reasonText(run.reason) }] : []),
              { label: 'Power-on method', value: powerText[run.power] },
              { label: 'Start rate', value: `${countOf(run.ratePerMinute, 'device')} per minute` },
            ]}
          />
        </div>
      </Panel>
      <Devices run={run} />
    </Page>
  )
}

const columns: Column<RunDevice>[] = [
  {
    title: 'Device',
    cell: ({ deviceId, name }) =>
      name === null ? (
        <span className="text-ink-soft">deleted device</span>
      ) : (
        <Link
          prefetch={false}
          href={`/devices/${deviceId}`}
          className="rounded font-medium text-ink underline-offset-4 hover:underline"
        >
          {name}
        </Link>
      ),
  },
  {
    title: 'Status',
    cell: (device) => (
      <>
        <DeviceTag state={device.state} />
        <span className="block whitespace-normal text-ink-soft text-xs md:hidden">{whyText(device)}</span>
      </>
    ),
  },
  {
    title: 'Reason',
    wide: true,
    from: 'md',
    cell: (device) => <span className="text-ink-soft text-xs">{whyText(device)}</span>,
  },
  {
    title: 'Powered on',
    align: 'right',
    from: 'sm',
    cell: ({ sentAt }) => (sentAt ? <Instant at={sentAt} /> : <Unknown label="not" />),
  },
  {
    title: 'Boot',
    align: 'right',
    cell: ({ boot }) =>
      boot ? (
        <Link prefetch={false} href={`/boots/${boot.id}`} className="rounded underline underline-offset-2">
          <BootDuration boot={boot} />
        </Link>
      ) : (
        <Unknown label="none" />
      ),
  },
]

function whyText({ reason, text }: RunDevice): string {
  return [reasonText(reason), text].filter(Boolean).join(': ')
}

const states = Object.entries(deviceStateText).map(([value, label]) => ({ value, label }))

function Devices({ run }: { run: RunDetail }) {
  const [state, setState] = useState<RunDevice['state'] | ''>('')
  const query = useInfiniteQuery(
    useTRPC().schedule.runDevices.infiniteQueryOptions(
      { runId: run.id, ...(state ? { state } : {}) },
      { getNextPageParam: (page) => page.nextCursor, refetchInterval: refreshMs },
    ),
  )
  const shown = query.data?.pages.flatMap(({ items }) => items) ?? []
  return (
    <>
      {run.startedAt && shown.some(({ sentAt }) => sentAt) && (
        <Panel title="Timeline">
          <RunTimeline startedAt={run.startedAt} devices={shown} />
        </Panel>
      )}
      <Panel
        title="Devices"
        flush
        aside={
          <SelectFilter
            label="Status"
            value={state}
            options={states}
            onChange={(value) => setState(value as RunDevice['state'] | '')}
          />
        }
      >
        <PagedList
          label="Devices in this run"
          query={query}
          columns={columns}
          rowKey={({ deviceId }) => deviceId}
          empty={<EmptyState title="No devices." text="No device of this run has this status." />}
        />
      </Panel>
    </>
  )
}
