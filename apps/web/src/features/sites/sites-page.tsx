'use client'

import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { ObjectLink } from '../../components/button'
import { ListPage } from '../../components/paged-list'
import type { Column } from '../../components/table'
import { formatCount } from '../../lib/format-quantity'
import { type Listed, nextPage, useTRPC } from '../../lib/trpc'
import { useNamedList } from '../../lib/use-named-list'
import { heartbeatRefreshMs } from '../edges/heartbeat-refresh'
import { EdgesOnline } from './edges-online'
import { NewSite } from './site-actions'

type SiteSummary = Listed<'site'>

const columns: Column<SiteSummary>[] = [
  {
    title: 'Name',
    sort: 'name',
    cell: (site) => <ObjectLink href={`/sites/${site.id}`}>{site.name}</ObjectLink>,
  },
  { title: 'Edges', cell: (site) => <EdgesOnline {...site} /> },
  { title: 'Time zone', from: 'sm', wide: true, cell: (site) => site.timeZone.replaceAll('_', ' ') },
  { title: 'Devices', align: 'right', cell: (site) => formatCount(site.deviceCount) },
]

export function SitesPage() {
  const trpc = useTRPC()
  const list = useNamedList()
  const query = useInfiniteQuery(
    trpc.site.list.infiniteQueryOptions(list.input, {
      ...nextPage,
      refetchInterval: heartbeatRefreshMs,
      placeholderData: keepPreviousData,
    }),
  )
  return (
    <ListPage
      title="Sites"
      summary="Locations with their edges and collections of devices."
      actions={<NewSite />}
      query={query}
      columns={columns}
      list={list}
      empty={{ title: 'No sites yet.', text: 'A site holds the edges and devices of one location.' }}
    />
  )
}
