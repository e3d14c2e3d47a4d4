'use client'

import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import Link from 'next/link'
import { useState } from 'react'
import { LinkButton, ObjectLink } from '../../components/button'
import { SelectFilter } from '../../components/filter'
import { Instant } from '../../components/instant'
import { EmptyState, Facts, Page, PageHeader, Panel, Unknown } from '../../components/page'
import { PagedList } from '../../components/paged-list'
import type { Column } from '../../components/table'
import { classNames } from '../../lib/class-names'
import { countOf } from '../../lib/format-quantity'
import { formatInstantInFull } from '../../lib/format-time'
import { nextPage, useTRPC } from '../../lib/trpc'
import { BootDuration } from '../boots/outcome-tag'
import { ObjectQuery, PageName } from '../shell/object-page'
import { MissingEdges } from './missing-edges'
import { DeviceTag, RunBar, RunTag } from './run-tags'
import { countsText, deviceStateText, edgesText, powerText, reasonText } from './schedule-text'
import type { RunDetail, RunDevice } from './schedule-types'

const refreshMs = 3_000

export function RunPage({ runId }: { runId: string }) {
  const query = useQuery(useTRPC().schedule.run.queryOptions({ runId }, { refetchInterval: refreshMs }))
  return (
    <ObjectQuery noun="run" query={query}>
      {(run) => <Run run={run} />}
    </ObjectQuery>
  )
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
        actions={<LinkButton href={`/storm?run=${run.id}`}>View the storm</LinkButton>}
      />
      <MissingEdges run={run} />
      <Panel title="Run">
        <div className="flex flex-col gap-4">
          <RunBar run={run} />
          <Facts
            facts={[
              { label: 'Scheduled', value: formatInstantInFull(at, run.timeZone) },
              { label: 'Your time', value: formatInstantInFull(at) },
              { label: 'Started', value: run.startedAt ? <Instant at={run.startedAt} full /> : null },
              { label: 'Result', value: countsText(run) },
              ...(edgesText(run.edges) ? [{ label: 'Edges', value: edgesText(run.edges) }] : []),
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
        <ObjectLink href={`/devices/${deviceId}`}>{name}</ObjectLink>
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
      { ...nextPage, refetchInterval: refreshMs },
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

const colours: Record<RunDevice['state'], string> = {
  waiting: 'fill-line-strong',
  sent: 'fill-live',
  booting: 'fill-live',
  ready: 'fill-ready',
  failed: 'fill-failed',
  not_seen: 'fill-silent',
  skipped: 'fill-line-strong',
}

const rowHeight = 6
const rowsMax = 60
const width = 1000

/**
 * When each device was switched on and how long its boot took, one line each, on one axis; the table has the same in
 * words.
 */
function RunTimeline({ startedAt, devices }: { startedAt: string; devices: RunDevice[] }) {
  const begin = new Date(startedAt).getTime()
  const lines = devices.slice(0, rowsMax).flatMap(({ deviceId, state, sentAt, boot }) => {
    if (!sentAt) return []
    const from = Math.max(0, new Date(sentAt).getTime() - begin)
    const until = boot ? new Date(boot.startedAt).getTime() - begin + boot.totalUs / 1000 : from
    return [{ deviceId, state, from, until: Math.max(from, until) }]
  })
  if (lines.length === 0) return null
  const span = Math.max(1000, ...lines.map(({ until }) => until))
  const x = (ms: number) => (ms / span) * width
  const height = lines.length * rowHeight
  return (
    <figure className="flex flex-col gap-1.5">
      <svg
        role="img"
        aria-label={`${lines.length} devices in ${seconds(span)}`}
        viewBox={`0 0 ${width} ${height}`}
        preserveAspectRatio="none"
        className="w-full"
        style={{ height: Math.max(24, height) }}
      >
        {lines.map(({ deviceId, state, from, until }, index) => (
          <rect
            key={deviceId}
            x={x(from)}
            y={index * rowHeight + 1}
            width={Math.max(3, x(until - from))}
            height={rowHeight - 2}
            className={classNames(colours[state])}
          />
        ))}
      </svg>
      <figcaption className="flex justify-between text-2xs text-ink-faint tabular-nums">
        <span>0</span>
        <span>{seconds(span / 2)}</span>
        <span>{seconds(span)}</span>
      </figcaption>
    </figure>
  )
}

function seconds(ms: number): string {
  return ms < 120_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 60_000)} min`
}
