'use client'

import type { RouterOutputs } from '@bootfarm/api/router'
import { useInfiniteQuery } from '@tanstack/react-query'
import { Instant } from '../../components/instant'
import { PagedList } from '../../components/paged-list'
import { Panel, Unknown } from '../../components/panel'
import { EmptyState } from '../../components/states'
import type { Column } from '../../components/table'
import { useTRPC } from '../../lib/trpc'

type PlatformEvent = RouterOutputs['platform']['events']['items'][number]

const actionText = new Map(
  Object.entries({
    'organization.founded': 'Organization created (self-service)',
    'organization.askDeletion': 'Deletion requested',
    'organization.cancelDeletion': 'Deletion cancelled',
    'organization.deleted': 'Organization deleted',
    'organization.suspend': 'Suspended',
    'organization.unsuspend': 'Suspension lifted',
    'organization.setQuotas': 'Quotas changed',
  }),
)

const columns: Column<PlatformEvent>[] = [
  { title: 'Event', cell: ({ action }) => actionText.get(action) ?? action },
  { title: 'Time', cell: ({ at }) => <Instant at={at} /> },
  { title: 'Organization', from: 'sm', wide: true, cell: ({ organizationId }) => <Id id={organizationId} /> },
  { title: 'Actor', from: 'lg', cell: ({ actorUserId }) => <Id id={actorUserId} /> },
]

function Id({ id }: { id: string | null }) {
  return id ? <span className="font-mono text-ink-soft text-xs">{id}</span> : <Unknown label="nobody" />
}

/** What was done to organizations as a whole; it outlives them. */
export function EventsPanel() {
  const query = useInfiniteQuery(
    useTRPC().platform.events.infiniteQueryOptions({ limit: 10 }, { getNextPageParam: (page) => page.nextCursor }),
  )
  return (
    <Panel title="Platform log" flush>
      <PagedList
        label="Platform log"
        query={query}
        columns={columns}
        rowKey={({ id }) => id}
        empty={<EmptyState title="No events yet." text="Changes of quotas, suspensions and deletions appear here." />}
      />
    </Panel>
  )
}
