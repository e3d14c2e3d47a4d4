'use client'

import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useRouter } from 'next/navigation'
import { Button, LinkButton, ObjectLink } from '../../components/button'
import { ConfirmButton } from '../../components/dialog'
import { Notice } from '../../components/field'
import { Instant } from '../../components/instant'
import { EmptyState, Facts, Page, PageHeader, Panel } from '../../components/page'
import { PagedList } from '../../components/paged-list'
import type { Column } from '../../components/table'
import { Tag } from '../../components/tag'
import { useToast } from '../../components/toast'
import { countOf } from '../../lib/format-quantity'
import { nextPage, readableError, useTRPC } from '../../lib/trpc'
import { HistoryPanel } from '../audit/history-panel'
import { useMay } from '../session/use-may'
import { ObjectQuery, PageName } from '../shell/object-page'
import { NextInstants } from './next-instants'
import { RunBar, RunTag } from './run-tags'
import { bareTarget } from './schedule-draft'
import { SchedulePlace } from './schedule-place'
import { countsText, powerText, targetText, whenText } from './schedule-text'
import type { RunSummary, ScheduleDetail } from './schedule-types'

/** A run advances even when no boot of it reports a change. */
const refreshMs = 5_000

export function SchedulePage({ scheduleId }: { scheduleId: string }) {
  const query = useQuery(useTRPC().schedule.get.queryOptions({ scheduleId }, { refetchInterval: refreshMs }))
  return (
    <ObjectQuery noun="schedule" query={query}>
      {(schedule) => <Schedule schedule={schedule} />}
    </ObjectQuery>
  )
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
          This schedule does not run at {site.siteName}. Schedules there name {site.namedCount.toLocaleString('en')}{' '}
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
                { label: 'Site', value: <SchedulePlace schedule={schedule} /> },
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
      <ObjectLink href={`/schedules/${run.scheduleId}/runs/${run.id}`}>
        <Instant at={run.instant} />
      </ObjectLink>
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
      { ...nextPage, refetchInterval: refreshMs },
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

/** Run now, switch off and on, change, remove. */
function ScheduleActions({ schedule }: { schedule: ScheduleDetail }) {
  const { id: scheduleId, revision, enabled } = schedule
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const router = useRouter()
  const showToast = useToast()
  const onError = (error: unknown) => {
    void queryClient.invalidateQueries(trpc.schedule.pathFilter())
    showToast({ title: 'Could not update the schedule.', text: readableError(error), tone: 'failed' })
  }
  const toggle = useMutation(
    trpc.schedule.setEnabled.mutationOptions({
      onSuccess: (saved) => {
        queryClient.setQueryData(trpc.schedule.get.queryKey({ scheduleId }), saved)
        void queryClient.invalidateQueries(trpc.schedule.pathFilter())
        showToast({ title: `${saved.name} ${saved.enabled ? 'enabled' : 'disabled'}.` })
      },
      onError,
    }),
  )
  const run = useMutation(
    trpc.schedule.runNow.mutationOptions({
      onSuccess: ({ runId }) => {
        void queryClient.invalidateQueries(trpc.schedule.pathFilter())
        router.push(`/schedules/${scheduleId}/runs/${runId}`)
      },
      onError,
    }),
  )
  return (
    <div className="flex flex-wrap gap-2">
      <ConfirmButton
        label="Run now"
        busy={run.isPending}
        title={`Run ${schedule.name} now?`}
        action="Start run"
        onConfirm={() => run.mutate({ scheduleId })}
      >
        <p>Powers on its devices at the start rate. Devices already booting are skipped.</p>
      </ConfirmButton>
      <Button busy={toggle.isPending} onClick={() => toggle.mutate({ scheduleId, revision, enabled: !enabled })}>
        {enabled ? 'Disable' : 'Enable'}
      </Button>
      <LinkButton href={`/schedules/${scheduleId}/edit`}>Edit</LinkButton>
      <Remove schedule={schedule} onError={onError} />
    </div>
  )
}

function Remove({ schedule, onError }: { schedule: ScheduleDetail; onError: (error: unknown) => void }) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const router = useRouter()
  const showToast = useToast()
  const remove = useMutation(
    trpc.schedule.remove.mutationOptions({
      onSuccess: () => {
        void queryClient.invalidateQueries(trpc.schedule.list.pathFilter())
        showToast({ title: `${schedule.name} deleted.` })
        router.push('/schedules')
      },
      onError,
    }),
  )
  return (
    <ConfirmButton
      label="Delete"
      busy={remove.isPending}
      title={`Delete ${schedule.name}?`}
      action="Delete schedule"
      onConfirm={() => remove.mutate({ scheduleId: schedule.id, revision: schedule.revision })}
    >
      <p>This also deletes its run history and stops a run in progress. The boots remain.</p>
    </ConfirmButton>
  )
}
