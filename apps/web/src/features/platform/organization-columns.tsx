import type { RouterOutputs } from '@bootfarm/api/router'
import { Button } from '../../components/button'
import { Age, Instant } from '../../components/instant'
import { Unknown } from '../../components/page'
import type { Column } from '../../components/table'
import { Tag } from '../../components/tag'
import { formatCount } from '../../lib/format-quantity'

export type PlatformOrganization = RouterOutputs['platform']['organizations']['items'][number]
type QuotaName = PlatformOrganization['quotas'][number]['name']

interface Actions {
  onLimit: (organization: PlatformOrganization) => void
  onSuspend: (organization: PlatformOrganization) => void
}

export function organizationColumns({ onLimit, onSuspend }: Actions): Column<PlatformOrganization>[] {
  return [
    { title: 'Name', cell: ({ name }) => <span className="font-medium text-ink">{name}</span> },
    { title: 'Status', wide: true, cell: (organization) => <States organization={organization} /> },
    { title: 'Sites', align: 'right', from: 'lg', cell: (row) => <Used row={row} name="sites" /> },
    { title: 'Devices', align: 'right', from: 'sm', cell: (row) => <Used row={row} name="devices" /> },
    { title: 'vDisks', align: 'right', from: 'xl', cell: (row) => <Used row={row} name="vdisks" /> },
    { title: 'Members', align: 'right', from: 'xl', cell: (row) => <Used row={row} name="members" /> },
    {
      title: 'Edges online',
      align: 'right',
      from: 'md',
      cell: ({ edgesOnline, quotas }) =>
        `${formatCount(edgesOnline)} of ${formatCount(quotas.find(({ name }) => name === 'edges')?.used ?? 0)}`,
    },
    {
      title: 'Versions',
      from: '2xl',
      cell: ({ edgeVersions }) =>
        Object.entries(edgeVersions)
          .map(([version, count]) => `${version} × ${count}`)
          .join(', ') || <Unknown label="no edges" />,
    },
    {
      title: 'Last report',
      from: 'lg',
      cell: ({ lastReportAt }) => (lastReportAt ? <Age at={lastReportAt} /> : <Unknown label="never" />),
    },
    {
      title: 'Actions',
      align: 'right',
      cell: (organization) => (
        <span className="inline-flex gap-1">
          <Button look="bare" onClick={() => onLimit(organization)} aria-label={`Quotas of ${organization.name}`}>
            Quotas
          </Button>
          <Button
            look="bare"
            onClick={() => onSuspend(organization)}
            aria-label={`${organization.suspendedAt ? 'Lift suspension' : 'Suspend'} ${organization.name}`}
          >
            {organization.suspendedAt ? 'Lift suspension' : 'Suspend'}
          </Button>
        </span>
      ),
    },
  ]
}

function States({ organization }: { organization: PlatformOrganization }) {
  const { suspendedAt, deleteAfter, isSelfService } = organization
  return (
    <span className="inline-flex flex-wrap gap-1.5">
      {suspendedAt ? <Tag tone="silent">Suspended</Tag> : <Tag tone="ready">Active</Tag>}
      {deleteAfter && (
        <Tag tone="failed">
          Deletion <Instant at={deleteAfter} />
        </Tag>
      )}
      {isSelfService && <Tag>Self-service</Tag>}
    </span>
  )
}

function Used({ row, name }: { row: PlatformOrganization; name: QuotaName }) {
  const quota = row.quotas.find((one) => one.name === name)
  if (!quota) return <Unknown />
  const { used, allowed } = quota
  return <>{allowed === null ? formatCount(used) : `${formatCount(used)} of ${formatCount(allowed)}`}</>
}
