'use client'

import { useInfiniteQuery } from '@tanstack/react-query'
import Link from 'next/link'
import { EmptyState, Panel } from '../../components/page'
import { PagedList } from '../../components/paged-list'
import { nextPage, useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'
import { historyColumns } from './audit-columns'

const entriesShown = 10

/** Lists the changes of an object and their authors, newest first; absent without permission to read the audit log. */
export function HistoryPanel({ objectId }: { objectId: string }) {
  const mayRead = useMay('audit.read')
  return mayRead ? <History objectId={objectId} /> : null
}

function History({ objectId }: { objectId: string }) {
  const query = useInfiniteQuery(useTRPC().audit.list.infiniteQueryOptions({ objectId, limit: entriesShown }, nextPage))
  return (
    <Panel
      title="History"
      flush
      aside={
        <Link href={`/audit?object=${objectId}`} className="underline underline-offset-2">
          View in audit log
        </Link>
      }
    >
      <PagedList
        label="History"
        query={query}
        columns={historyColumns}
        rowKey={({ id }) => id}
        empty={<EmptyState title="No changes yet." text="Changes to this object appear here." />}
      />
    </Panel>
  )
}
