'use client'

import { useInfiniteQuery } from '@tanstack/react-query'
import { LinkButton } from '../../components/button'
import { ListPage } from '../../components/paged-list'
import { nextPage, useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'
import { AddEdge } from './add-edge'
import { edgeColumns } from './edge-columns'
import { heartbeatRefreshMs } from './heartbeat-refresh'

export function EdgesPage() {
  const trpc = useTRPC()
  const maySeeReleases = useMay('rollout.read')
  const query = useInfiniteQuery(
    trpc.edge.list.infiniteQueryOptions({}, { ...nextPage, refetchInterval: heartbeatRefreshMs }),
  )
  return (
    <ListPage
      title="Edges"
      summary="Servers at your sites that boot devices."
      actions={
        <>
          {maySeeReleases && <LinkButton href="/edges/rollouts">Releases</LinkButton>}
          <AddEdge />
        </>
      }
      query={query}
      columns={edgeColumns}
      empty={{
        title: 'No edges yet.',
        text: '“Add edge” generates a command to run on a server at one of your sites.',
      }}
    />
  )
}
