'use client'

import { useQuery } from '@tanstack/react-query'
import { Banner } from '../../components/banner'
import { ObjectLink } from '../../components/button'
import { Instant } from '../../components/instant'
import { useTRPC } from '../../lib/trpc'
import type { RunDetail } from './schedule-types'

const missingText: Record<RunDetail['edges']['missing'][number]['state'], string> = {
  away: 'is away, last seen',
  not_reported: 'did not report the run in its time. It was closed',
  waiting: 'has not reported the run yet. It was planned',
  running: 'has not reported the end yet. It started',
}

/** Names the edges whose devices the figures of the run lack: nobody guesses why it is not done, or what it misses. */
export function MissingEdges({ run: { state, edges } }: { run: RunDetail }) {
  const isOpen = state === 'waiting' || state === 'running'
  const missing = isOpen ? edges.missing.filter((edge) => edge.state === 'away') : edges.missing
  if (missing.length === 0) return null
  return (
    <Banner label="Edges without a report" tone="silent">
      <ul className="flex flex-col gap-0.5">
        {missing.map((edge) => (
          <li key={edge.edgeId}>
            <ObjectLink href={`/edges/${edge.edgeId}`}>{edge.name}</ObjectLink> ({edge.siteName}){' '}
            {missingText[edge.state]} <Instant at={edge.since} />.
          </li>
        ))}
      </ul>
      <p className="mt-1">
        {isOpen
          ? 'The run does not wait for edges that are away for ten minutes. They still count if they report before it is done.'
          : 'The figures are final. What these edges did is on the pages of their devices once they report.'}
      </p>
    </Banner>
  )
}

/** It changes when an edge comes back or is given up. */
const refreshMs = 10_000

/** The same where the run itself is not on the page. */
export function MissingEdgesOf({ runId }: { runId: string }) {
  const { data } = useQuery(useTRPC().schedule.run.queryOptions({ runId }, { refetchInterval: refreshMs }))
  return data ? <MissingEdges run={data} /> : null
}
