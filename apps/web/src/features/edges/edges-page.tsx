'use client'

import { useInfiniteQuery } from '@tanstack/react-query'
import { Page, PageHeader } from '../../components/page-header'
import { PagedList } from '../../components/paged-list'
import { EmptyState } from '../../components/states'
import { useTRPC } from '../../lib/trpc'
import { AddEdge } from './add-edge'
import { edgeColumns } from './edge-columns'
import { heartbeatRefreshMs } from './heartbeat-refresh'

export function EdgesPage() {
  const trpc = useTRPC()
  const query = useInfiniteQuery(
    trpc.edge.list.infiniteQueryOptions(
      {},
      { getNextPageParam: (page) => page.nextCursor, refetchInterval: heartbeatRefreshMs },
    ),
  )
  return (
    <Page>
      <PageHeader title="Edges" summary="Servers at your sites that boot devices." actions={<AddEdge />} />
      <div className="rounded-lg border border-line bg-surface">
        <PagedList
          label="Edges"
          query={query}
          columns={edgeColumns}
          rowKey={(edge) => edge.id}
          empty={
            <EmptyState
              title="No edges yet."
              text="“Add edge” generates a command to run on a server at one of your sites."
            />
          }
        />
      </div>
    </Page>
  )
}
