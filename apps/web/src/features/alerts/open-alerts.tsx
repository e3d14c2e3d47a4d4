'use client'

import { useInfiniteQuery } from '@tanstack/react-query'
import { Panel } from '../../components/page'
import { PageLink } from '../../components/page-link'
import { PagedList } from '../../components/paged-list'
import { nextPage, useTRPC } from '../../lib/trpc'
import { alertColumns } from './alert-columns'
import { alertRefreshMs } from './alert-refresh'

const shownMax = 5

/** Open alerts of a site or a collection; nothing where there are none. */
export function OpenAlerts({ scope }: { scope: { siteId: string } | { collectionId: string } }) {
  const trpc = useTRPC()
  const query = useInfiniteQuery(
    trpc.alert.list.infiniteQueryOptions(
      { ...scope, state: 'open', limit: shownMax },
      { ...nextPage, refetchInterval: alertRefreshMs },
    ),
  )
  if (!query.data?.pages.some(({ items }) => items.length > 0)) return null
  const [name, id] = 'siteId' in scope ? ['site', scope.siteId] : ['collection', scope.collectionId]
  return (
    <Panel
      title="Open alerts"
      flush
      aside={
        <PageLink href={`/alerts?state=all&${name}=${id}`} className="rounded underline-offset-4 hover:underline">
          All alerts
        </PageLink>
      }
    >
      <PagedList label="Open alerts" query={query} columns={alertColumns} rowKey={(alert) => alert.id} empty={null} />
    </Panel>
  )
}
