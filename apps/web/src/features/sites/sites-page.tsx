'use client'

import { useInfiniteQuery } from '@tanstack/react-query'
import Link from 'next/link'
import { ListPage } from '../../components/list-page'
import type { Column } from '../../components/table'
import { formatCount } from '../../lib/format-quantity'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { heartbeatRefreshMs } from '../edges/heartbeat-refresh'
import { EdgesOnline } from './edges-online'
import { NewSite } from './site-actions'

type SiteSummary = RouterOutputs['site']['list']['items'][number]

const columns: Column<SiteSummary>[] = [
  {
    title: 'Name',
    cell: (site) => (
      <Link
        prefetch={false}
        href={`/sites/${site.id}`}
        className="rounded font-medium text-ink underline-offset-4 hover:underline"
      >
        {site.name}
      </Link>
    ),
  },
  { title: 'Edges', cell: (site) => <EdgesOnline {...site} /> },
  { title: 'Time zone', from: 'sm', wide: true, cell: (site) => site.timeZone.replaceAll('_', ' ') },
  { title: 'Devices', align: 'right', cell: (site) => formatCount(site.deviceCount) },
]

export function SitesPage() {
  const trpc = useTRPC()
  const query = useInfiniteQuery(
    trpc.site.list.infiniteQueryOptions(
      {},
      { getNextPageParam: (page) => page.nextCursor, refetchInterval: heartbeatRefreshMs },
    ),
  )
  return (
    <ListPage
      title="Sites"
      summary="Locations with their edges and collections of devices."
      actions={<NewSite />}
      query={query}
      columns={columns}
      empty={{ title: 'No sites yet.', text: 'A site holds the edges and devices of one location.' }}
    />
  )
}
