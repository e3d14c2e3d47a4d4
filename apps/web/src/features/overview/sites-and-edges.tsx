'use client'

import { useQuery } from '@tanstack/react-query'
import Link from 'next/link'
import { Age } from '../../components/instant'
import { Panel } from '../../components/panel'
import { EmptyState, ErrorState, LoadingState, Skeleton } from '../../components/states'
import { countOf } from '../../lib/format-quantity'
import { readableError } from '../../lib/readable-error'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { EdgeState } from '../edges/edge-columns'
import { heartbeatRefreshMs } from '../edges/heartbeat-refresh'

type SiteSummary = RouterOutputs['site']['list']['items'][number]
type EdgeSummary = RouterOutputs['edge']['list']['items'][number]

const shownMax = 20

export function SitesAndEdges({ farmId }: { farmId: string }) {
  const trpc = useTRPC()
  const often = { refetchInterval: heartbeatRefreshMs }
  const sites = useQuery(trpc.site.list.queryOptions({ farmId, limit: shownMax }, often))
  const edges = useQuery(trpc.edge.list.queryOptions({ limit: shownMax }, often))
  const failed = sites.error ?? edges.error
  return (
    <Panel title="Sites and edges" flush className="h-full">
      {sites.data && edges.data ? (
        <SiteList sites={sites.data.items} edges={edges.data.items} />
      ) : failed ? (
        <ErrorState
          title="Could not load sites and edges."
          text={readableError(failed)}
          onRetry={() => Promise.all([sites.refetch(), edges.refetch()])}
        />
      ) : (
        <LoadingState label="Loading sites and edges">
          <div className="flex flex-col gap-3 p-4">
            <Skeleton className="h-5 w-32" />
            <Skeleton className="h-8" />
          </div>
        </LoadingState>
      )}
    </Panel>
  )
}

function SiteList({ sites, edges }: { sites: SiteSummary[]; edges: EdgeSummary[] }) {
  if (sites.length === 0) return <EmptyState title="No sites yet." text="A site holds edges and devices." />
  return (
    <ul>
      {sites.map((site) => (
        <li key={site.id} className="border-line border-t px-4 py-3 first:border-t-0">
          <div className="flex items-baseline justify-between gap-3">
            <Link href={`/sites/${site.id}`} className="rounded font-medium underline-offset-4 hover:underline">
              {site.name}
            </Link>
            <span className="text-ink-faint text-xs">{countOf(site.deviceCount, 'device')}</span>
          </div>
          <ul className="mt-2 flex flex-col gap-2">
            {edges
              .filter((edge) => edge.siteId === site.id)
              .map((edge) => (
                <EdgeLine key={edge.id} edge={edge} />
              ))}
          </ul>
        </li>
      ))}
    </ul>
  )
}

function EdgeLine({ edge }: { edge: EdgeSummary }) {
  return (
    <li className="flex items-center gap-3 rounded-md bg-sunken px-3 py-2">
      <div className="min-w-0 flex-1">
        <Link href={`/edges/${edge.id}`} className="rounded underline-offset-4 hover:underline">
          {edge.name}
        </Link>
        <p className="truncate text-ink-faint text-xs">
          {edge.agentVersion} on {edge.arch}
          {edge.heartbeatAt && (
            <>
              , last seen <Age at={edge.heartbeatAt} />
            </>
          )}
        </p>
      </div>
      <EdgeState edge={edge} />
    </li>
  )
}
