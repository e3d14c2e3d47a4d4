import { Unknown } from '../../components/page'
import { type Column, Table } from '../../components/table'
import { Mono, Tag } from '../../components/tag'
import { formatCount } from '../../lib/format-quantity'
import { linksText, type NetworkPath, pathKey, rttText, shareText } from './network-text'

const columns: Column<NetworkPath>[] = [
  { title: 'Segment', cell: ({ segment }) => (segment ? <Mono>{segment}</Mono> : 'No address') },
  { title: 'Site', from: 'md', cell: ({ siteName }) => siteName ?? <Unknown /> },
  {
    title: 'Card',
    from: 'sm',
    wide: true,
    cell: ({ card }) => (
      <span className="block max-w-56 truncate" title={card ?? undefined}>
        {card ?? <Unknown />}
      </span>
    ),
  },
  {
    title: 'Boots',
    align: 'right',
    cell: ({ bootCount, deviceCount }) => (
      <span title={`${formatCount(deviceCount)} devices`}>{formatCount(bootCount)}</span>
    ),
  },
  {
    title: 'Lost to device',
    meaning: 'Packets from the edge that did not arrive',
    align: 'right',
    cell: ({ toDevice }) => <Share ratio={toDevice} />,
  },
  {
    title: 'Lost to edge',
    meaning: 'Packets from the device that did not arrive',
    align: 'right',
    from: 'lg',
    cell: ({ fromDevice }) => <Share ratio={fromDevice} />,
  },
  {
    title: 'Overtaken',
    meaning: 'Packets to the device that a later one overtook',
    align: 'right',
    from: 'xl',
    cell: ({ reordering }) => <Share ratio={reordering} />,
  },
  {
    title: 'RTT p50 / p95',
    meaning: 'Round trip: medians over boots',
    align: 'right',
    from: 'lg',
    cell: (path) => rttText(path) ?? <Unknown />,
  },
  { title: 'Link', from: 'md', cell: (path) => linksText(path) ?? <Unknown /> },
  {
    title: 'To check',
    align: 'right',
    cell: ({ faults }) => {
      const count = faults.filter(({ severity }) => severity === 'fault').length
      return count > 0 ? <Tag tone="failed">{count}</Tag> : <Unknown label="nothing" />
    },
  },
]

/** The share with its interval; a dash where nothing was measured. */
function Share({ ratio }: { ratio: NetworkPath['toDevice'] }) {
  if (!ratio) return <Unknown label="not measured" />
  return (
    <span className="inline-flex flex-col items-end leading-tight">
      <span>{shareText(ratio.share)}</span>
      <span className="text-2xs text-ink-faint">
        ({shareText(ratio.low)} to {shareText(ratio.high)})
      </span>
    </span>
  )
}

export function PathsTable({ paths }: { paths: NetworkPath[] }) {
  return <Table label="Segments and network cards" columns={columns} rows={paths} rowKey={pathKey} />
}
