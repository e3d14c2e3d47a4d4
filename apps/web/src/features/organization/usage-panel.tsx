'use client'

import { useQuery } from '@tanstack/react-query'
import { Panel } from '../../components/panel'
import { ErrorState } from '../../components/states'
import { type Column, Table, TableSkeleton } from '../../components/table'
import { Tag } from '../../components/tag'
import { formatCount } from '../../lib/format-quantity'
import { readableError } from '../../lib/readable-error'
import { useTRPC } from '../../lib/trpc'
import { type Quota, quotaTitles } from './organization-types'

const columns: Column<Quota>[] = [
  { title: 'Resource', wide: true, cell: ({ name }) => quotaTitles[name] },
  { title: 'Used', align: 'right', cell: ({ used }) => formatCount(used) },
  {
    title: 'Limit',
    align: 'right',
    cell: ({ allowed }) => (allowed === null ? 'Unlimited' : formatCount(allowed)),
  },
  {
    title: 'Status',
    align: 'right',
    cell: ({ used, allowed }) =>
      allowed !== null && used >= allowed ? <Tag tone="silent">Full</Tag> : <Tag>Available</Tag>,
  },
]

/** What the organization has of what there are quotas for. */
export function UsagePanel({ contact }: { contact: string | null }) {
  const query = useQuery(useTRPC().organization.usage.queryOptions({}))
  return (
    <Panel title="Usage and quotas" flush>
      {query.isPending && <TableSkeleton label="Usage" />}
      {query.error && !query.data && <ErrorState title="Could not load the usage." text={readableError(query.error)} />}
      {query.data && (
        <Table label="Usage and quotas" columns={columns} rows={query.data.quotas} rowKey={({ name }) => name} />
      )}
      <p className="border-line border-t px-4 py-3 text-ink-soft text-xs">
        Objects in the trash do not count. For higher limits, contact {contact ?? 'the operator of this installation'}.
      </p>
    </Panel>
  )
}
