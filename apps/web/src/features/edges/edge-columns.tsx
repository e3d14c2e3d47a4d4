import Link from 'next/link'
import { ObjectLink } from '../../components/button'
import { Age } from '../../components/instant'
import type { Column } from '../../components/table'
import { Dot, Mono, Tag } from '../../components/tag'
import { formatCount } from '../../lib/format-quantity'
import type { Listed } from '../../lib/trpc'

type EdgeSummary = Listed<'edge'>

export const edgeColumns: Column<EdgeSummary>[] = [
  {
    title: 'Name',
    sort: 'name',
    cell: (edge) => <ObjectLink href={`/edges/${edge.id}`}>{edge.name}</ObjectLink>,
  },
  { title: 'Status', cell: (edge) => <EdgeState edge={edge} /> },
  {
    title: 'Site',
    sort: 'siteName',
    from: 'sm',
    wide: true,
    cell: (edge) => (
      <Link
        prefetch={false}
        href={`/sites/${edge.siteId}`}
        className="rounded text-ink-soft underline-offset-4 hover:underline"
      >
        {edge.siteName}
      </Link>
    ),
  },
  {
    title: 'Version',
    sort: 'agentVersion',
    from: 'md',
    cell: (edge) => <Mono>{edge.agentVersion}</Mono>,
  },
  { title: 'Booting', align: 'right', from: 'sm', cell: (edge) => formatCount(edge.devicesBooting) },
  { title: 'Backlog', align: 'right', from: 'md', cell: (edge) => formatCount(edge.reportBacklog) },
  {
    title: 'Last seen',
    sort: 'heartbeatAt',
    align: 'right',
    cell: (edge) => (edge.heartbeatAt ? <Age at={edge.heartbeatAt} /> : <span className="text-ink-faint">never</span>),
  },
]

export function EdgeState({ edge }: { edge: Pick<EdgeSummary, 'online' | 'revokedAt' | 'problems'> }) {
  if (edge.revokedAt !== null) return <Tag title="The control plane refuses its requests.">Revoked</Tag>
  if (edge.online && edge.problems.length > 0)
    return (
      <Tag tone="silent" title={`Online, with problems of its disks: ${edge.problems.join(', ')}.`}>
        <Dot tone="silent" />
        Degraded
      </Tag>
    )
  const tone = edge.online ? 'ready' : 'failed'
  return (
    <Tag tone={tone} title={edge.online ? 'Seen within the last 75 s.' : 'Not seen for more than 75 s.'}>
      <Dot tone={tone} />
      {edge.online ? 'Online' : 'Offline'}
    </Tag>
  )
}
