'use client'

import { useQuery } from '@tanstack/react-query'
import { EmptyState, Facts, LoadingState, Panel, ProblemNote, Skeleton } from '../../components/page'
import { formatBytes } from '../../lib/format-quantity'
import { readableError, useTRPC } from '../../lib/trpc'
import { heartbeatRefreshMs } from '../edges/heartbeat-refresh'
import { forecastText, linePoints, lineText, type Space, trendText, warningText } from './space-text'

const chart = { width: 400, height: 60 }

/** How much of an edge's store is free, and when it becomes full. */
export function SpacePanel({ edgeId }: { edgeId: string }) {
  const trpc = useTRPC()
  const { data: space, error } = useQuery(
    trpc.space.get.queryOptions({ edgeId }, { refetchInterval: heartbeatRefreshMs }),
  )
  return (
    <Panel title="Free space" flush={space?.freeBytes === null}>
      {space ? (
        <SpaceFacts space={space} />
      ) : error ? (
        <p className="text-failed text-sm">{readableError(error)}</p>
      ) : (
        <LoadingState label="Loading free space">
          <Skeleton className="h-4 w-64" />
        </LoadingState>
      )}
    </Panel>
  )
}

function SpaceFacts({ space }: { space: Space }) {
  const { freeBytes, totalBytes, usableBytes, pendingBytes } = space
  if (freeBytes === null || totalBytes === null || usableBytes === null)
    return <EmptyState title="Not reported." text="This edge has not reported the size of its store." />
  const warning = warningText(space)
  return (
    <div className="flex min-w-0 flex-col gap-3">
      {warning && <ProblemNote>{warning}</ProblemNote>}
      <Facts
        facts={[
          {
            label: 'For versions and write caches',
            value: `${formatBytes(usableBytes)} of ${formatBytes(totalBytes)}`,
          },
          ...(pendingBytes > 0 ? [{ label: 'Fetched now', value: formatBytes(pendingBytes) }] : []),
          { label: 'Trend', value: trendText(space) },
          { label: 'Becomes full', value: forecastText(space, Date.now()) },
        ]}
      />
      <SpaceLine space={space} />
    </div>
  )
}

function SpaceLine({ space }: { space: Space }) {
  const points = linePoints(space, chart)
  if (points === '') return null
  return (
    <div className="flex flex-col gap-1">
      <svg
        role="img"
        aria-label="Free space over the last 60 days"
        viewBox={`0 0 ${chart.width} ${chart.height}`}
        preserveAspectRatio="none"
        className={`h-16 w-full border-line border-b ${space.warning ? 'text-failed' : 'text-ready'}`}
      >
        <title>Free space over the last 60 days</title>
        <polyline
          points={points}
          fill="none"
          stroke="currentColor"
          strokeWidth="1.5"
          vectorEffect="non-scaling-stroke"
        />
      </svg>
      <p className="text-ink-faint text-xs">{lineText(space)}</p>
    </div>
  )
}
