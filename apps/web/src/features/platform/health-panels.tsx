'use client'

import type { RouterOutputs } from '@bootfarm/api/router'
import { Age } from '../../components/instant'
import { EmptyState, Facts, Panel, Unknown } from '../../components/page'
import { type Column, Table } from '../../components/table'
import { Mono, Tag } from '../../components/tag'
import { countOf, formatBytes, formatCount } from '../../lib/format-quantity'

type Health = RouterOutputs['platform']['health']
type Job = Health['jobs'][number]

const jobColumns: Column<Job>[] = [
  { title: 'Job', wide: true, cell: ({ name }) => name },
  {
    title: 'Status',
    cell: ({ failureCount, failedOrganizationCount, lastFailureCode }) =>
      failureCount === 0 ? (
        <Tag tone="ready">Succeeded</Tag>
      ) : (
        <Tag tone="failed" title={lastFailureCode ?? ''}>
          Failed {failureCount}×
          {failedOrganizationCount > 0 && ` for ${countOf(failedOrganizationCount, 'organization')}`}
        </Tag>
      ),
  },
  {
    title: 'Error',
    from: 'lg',
    cell: ({ failureCount, lastFailureCode }) =>
      failureCount > 0 && lastFailureCode ? <Mono>{lastFailureCode}</Mono> : <Unknown label="none" />,
  },
  {
    title: 'Last success',
    from: 'sm',
    align: 'right',
    cell: ({ lastSucceededAt }) => (lastSucceededAt ? <Age at={lastSucceededAt} /> : <Unknown label="never" />),
  },
]

/** Sums over the installation, and its jobs. */
export function HealthPanels({ health }: { health: Health }) {
  return (
    <div className="grid gap-5 lg:grid-cols-[1fr_2fr]">
      <Panel title="Installation">
        <Facts
          facts={[
            { label: 'Organizations', value: formatCount(health.organizations) },
            { label: 'Suspended', value: formatCount(health.suspended) },
            { label: 'Deletion scheduled', value: formatCount(health.beingDeleted) },
            { label: 'Accounts', value: formatCount(health.people) },
            {
              label: 'Edges online',
              value: `${formatCount(health.edgesOnline)} of ${formatCount(health.edges)}`,
            },
            { label: 'Database', value: formatBytes(health.databaseSizeBytes) },
          ]}
        />
      </Panel>
      <Panel title="Jobs" flush>
        {health.jobs.length > 0 ? (
          <Table label="Jobs" columns={jobColumns} rows={health.jobs} rowKey={({ name }) => name} />
        ) : (
          <EmptyState title="No job has run yet." text="Jobs start with the API." />
        )}
      </Panel>
    </div>
  )
}
