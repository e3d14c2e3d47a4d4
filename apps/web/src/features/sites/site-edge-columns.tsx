import type { Column } from '../../components/table'
import { Tag } from '../../components/tag'
import type { RouterOutputs } from '../../lib/trpc'
import { edgeColumns } from '../edges/edge-columns'

type SiteEdge = RouterOutputs['site']['get']['edges'][number]

const named = (title: string) => edgeColumns.filter((column) => column.title === title)

/** A site's edges beside each other. @param edgeCount how many are not revoked */
export function siteEdgeColumns(edgeCount: number): Column<SiteEdge>[] {
  return [
    ...named('Name'),
    ...named('Status'),
    {
      title: 'Share',
      align: 'right',
      meaning: 'Share of the site’s devices with the edges that are online now, not counting preferred networks.',
      cell: (edge) => (
        <span className="inline-flex items-center gap-2">
          {edge.draining && <Tag tone="silent">draining</Tag>}
          {edge.share}&nbsp;%
        </span>
      ),
    },
    {
      title: 'Peers',
      from: 'sm',
      align: 'right',
      meaning: 'Other edges of the site seen within the last 20 s.',
      cell: (edge) => (edgeCount < 2 ? 'alone' : `${edge.peersHeard} of ${edgeCount - 1}`),
    },
    ...named('Booting'),
    ...named('Backlog'),
    ...named('Last seen'),
  ]
}
