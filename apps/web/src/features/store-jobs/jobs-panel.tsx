'use client'

import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import { Panel } from '../../components/panel'
import { ErrorState, LoadingState, Skeleton } from '../../components/states'
import { readableError } from '../../lib/readable-error'
import { useTRPC } from '../../lib/trpc'
import { JobRow } from './job-row'
import { isActive } from './job-text'

/** How soon a bar moves, and how soon work is noticed that others have begun. */
const activeRefreshMs = 1500
const idleRefreshMs = 10_000
/** The newest; all are in the API. */
const jobsShown = 10

interface JobsPanelProps {
  /** Of which vDisk, or of which edge's store. */
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
