'use client'

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import Link from 'next/link'
import { useEffect } from 'react'
import { Button } from '../../components/button'
import { Instant } from '../../components/instant'
import { ErrorState, LoadingState, Panel, Skeleton } from '../../components/page'
import { Tag, type Tone } from '../../components/tag'
import { useFailureToast } from '../../components/toast'
import { formatBytes } from '../../lib/format-quantity'
import { readableError, useTRPC } from '../../lib/trpc'
import { HelpLink } from '../help/help-link'
import { helpTopics } from '../help/help-links'
import { useMay } from '../session/use-may'
import { isActive, isCancellable, jobPercent, jobText, type StoreJob } from './job-text'

/** How soon a bar moves, and how soon jobs of others appear. */
const activeRefreshMs = 1500
const idleRefreshMs = 10_000
/** The newest; all are in the API. */
const jobsShown = 10

interface JobsPanelProps {
  of: { vdiskId: string } | { edgeId: string }
}

/** Work of edges' stores: kept by the API, so that it is here again after a reload. */
export function JobsPanel({ of }: JobsPanelProps) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const query = useQuery(
    trpc.storeJob.list.queryOptions(
      { ...of, limit: jobsShown },
      {
        refetchInterval: ({ state }) => (state.data?.items.some(isActive) ? activeRefreshMs : idleRefreshMs),
      },
    ),
  )
  const activeIds = (query.data?.items ?? [])
    .filter(isActive)
    .map(({ id }) => id)
    .join(' ')
  // What a job has made or freed is shown by the pages of vDisks.
  // biome-ignore lint/correctness/useExhaustiveDependencies: it is the change that counts
  useEffect(() => {
    void queryClient.invalidateQueries(trpc.vdisk.pathFilter())
  }, [activeIds, queryClient, trpc])
  return (
    <Panel title="Storage jobs" aside="newest first" flush>
      {query.data ? (
        query.data.items.length === 0 ? (
          <p className="p-4 text-ink-soft text-sm">
            No jobs yet. Seals, merges and imports appear here while they run and for 30 days afterwards.
          </p>
        ) : (
          <ul aria-label="Storage jobs">
            {query.data.items.map((job) => (
              <JobRow key={job.id} job={job} showEdge={'vdiskId' in of} />
            ))}
          </ul>
        )
      ) : query.error ? (
        <ErrorState
          title="Could not load the storage jobs."
          text={readableError(query.error)}
          onRetry={() => query.refetch()}
        />
      ) : (
        <LoadingState label="Loading storage jobs">
          <Skeleton className="m-4 h-4 w-64" />
        </LoadingState>
      )}
    </Panel>
  )
}

const tones: Record<StoreJob['state'], Tone> = {
  queued: 'plain',
  running: 'live',
  done: 'ready',
  failed: 'failed',
  cancelled: 'silent',
}

function topicOf({ kind }: StoreJob): 'imports' | 'storageJobs' {
  return kind === 'import' ? 'imports' : 'storageJobs'
}

function JobRow({ job, showEdge }: { job: StoreJob; showEdge: boolean }) {
  const { edge, state, untrusted, askedBy, askedAt, endedAt } = job
  return (
    <li className="flex flex-wrap items-start justify-between gap-x-6 gap-y-2 border-line border-t px-4 py-3 text-sm first:border-t-0">
      <div className="flex min-w-0 flex-1 basis-72 flex-col gap-1">
        <div className="flex flex-wrap items-center gap-x-2 gap-y-1">
          <span className="break-words font-medium text-ink">{jobText(job)}</span>
          <Tag tone={tones[state]}>{state}</Tag>
          {state === 'failed' && <HelpLink to={helpTopics[topicOf(job)]}>Why jobs fail</HelpLink>}
        </div>
        <p className="text-ink-faint text-xs">
          {showEdge && (
            <>
              on{' '}
              <Link
                prefetch={false}
                href={`/edges/${edge.id}`}
                className="text-ink-soft underline decoration-line-strong underline-offset-4 hover:decoration-ink"
              >
                {edge.name}, {edge.siteName}
              </Link>
              ;
            </>
          )}{' '}
          requested by {askedBy}, <Instant at={askedAt} />
          {endedAt && (
            <>
              ; finished <Instant at={endedAt} />
            </>
          )}
        </p>
        {isActive(job) && <JobProgress job={job} />}
        {untrusted.message && (
          <p className={`break-words text-xs ${state === 'failed' ? 'text-failed' : 'text-ink-soft'}`}>
            {untrusted.message}
          </p>
        )}
      </div>
      <CancelJob job={job} />
    </li>
  )
}

function JobProgress({ job }: { job: StoreJob }) {
  const percent = jobPercent(job)
  const text =
    job.state === 'queued'
      ? job.untrusted.message
        ? 'waiting'
        : 'waiting for its edge'
      : percent === null
        ? `${formatBytes(job.progressBytes)} done`
        : `${percent} %, ${formatBytes(job.progressBytes)} of ${formatBytes(job.totalBytes)}`
  return (
    <div className="max-w-md">
      <div
        role="progressbar"
        aria-label={jobText(job)}
        aria-valuemin={0}
        aria-valuemax={100}
        {...(percent === null ? {} : { 'aria-valuenow': percent })}
        aria-valuetext={text}
        className="mt-1 h-1.5 overflow-hidden rounded-full bg-line"
      >
        <div className="h-full rounded-full bg-live" style={{ width: `${percent ?? 0}%` }} />
      </div>
      <p className="mt-1 text-ink-soft text-xs">{text}</p>
    </div>
  )
}

function CancelJob({ job }: { job: StoreJob }) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const mayChange = useMay('vdisk.change', { siteId: job.edge.siteId })
  const cancel = useMutation(
    trpc.storeJob.cancel.mutationOptions({
      onSettled: () => void queryClient.invalidateQueries(),
      onError: useFailureToast('Could not cancel the job.'),
    }),
  )
  if (!mayChange || !isCancellable(job)) return null
  return (
    <Button
      small
      busy={cancel.isPending}
      aria-label={`Cancel: ${jobText(job)}`}
      onClick={() => cancel.mutate({ jobId: job.id })}
    >
      Cancel
    </Button>
  )
}
