import { ObjectLink } from '../../components/button'
import { Instant } from '../../components/instant'
import { EmptyState, Panel } from '../../components/page'
import { type Column, Table } from '../../components/table'
import { Tag } from '../../components/tag'
import { countOf, formatBytes, formatCount, formatDuration } from '../../lib/format-quantity'
import { readyAtMs, type Straggler, stragglersShownMax } from './storm-figures'
import { hrefOfCell } from './storm-map'
import type { Storm, StormCell } from './storm-model'
import { slowMeaning, stragglerText } from './storm-text'

const deviceColumn: Column<StormCell> = {
  title: 'Device',
  wide: true,
  cell: (cell) => <ObjectLink href={hrefOfCell(cell)}>{cell.name}</ObjectLink>,
}
const readyColumns: Column<StormCell>[] = [
  deviceColumn,
  { title: 'Ready at', align: 'right', cell: (cell) => <Instant at={new Date(readyAtMs(cell)).toISOString()} /> },
  { title: 'Boot time', align: 'right', cell: ({ tookMs }) => formatDuration(tookMs * 1000) },
]

export function ReadyPanels({ first, last }: { first: StormCell[]; last: StormCell[] }) {
  return (
    <div className="grid items-start gap-5 lg:grid-cols-2">
      <ReadyPanel title="First ready" cells={first} />
      <ReadyPanel title="Last ready" cells={last} />
    </div>
  )
}

function ReadyPanel({ title, cells }: { title: string; cells: StormCell[] }) {
  return (
    <Panel title={title} flush>
      {cells.length === 0 ? (
        <EmptyState title="No device is ready yet." text="Devices appear here once they are." />
      ) : (
        <Table label={`${title}: devices`} columns={readyColumns} rows={cells} rowKey={({ key }) => key} />
      )}
    </Panel>
  )
}

/** Devices that take much longer than others, each with the reason why it is here. */
export function StragglersPanel({ stragglers }: { stragglers: Straggler[] }) {
  return (
    <Panel title="Stragglers" flush aside={<span title={slowMeaning}>{countOf(stragglers.length, 'device')}</span>}>
      {stragglers.length === 0 ? (
        <EmptyState title="No stragglers." text={slowMeaning} />
      ) : (
        <ul aria-label="Stragglers">
          {stragglers.slice(0, stragglersShownMax).map((straggler) => (
            <li key={straggler.cell.key} className="border-line border-t px-4 py-2.5 text-sm first:border-t-0">
              <ObjectLink href={hrefOfCell(straggler.cell)}>{straggler.cell.name}</ObjectLink>
              <p className="mt-0.5 text-ink-soft text-xs">{stragglerText(straggler)}</p>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  )
}

type StormEdge = Storm['edges'][number]

const edgeColumns: Column<StormEdge>[] = [
  {
    title: 'Edge',
    wide: true,
    cell: ({ id, name, siteName, online }) => (
      <span className="inline-flex flex-wrap items-center gap-x-2">
        <ObjectLink href={`/edges/${id}`}>{name}</ObjectLink>
        <span className="text-ink-faint text-xs">{siteName}</span>
        {!online && <Tag tone="failed">offline</Tag>}
      </span>
    ),
  },
  { title: 'Booting', align: 'right', cell: ({ bootingCount }) => formatCount(bootingCount) },
  {
    title: 'Sent',
    meaning: 'Bytes to these devices over the last minute. Edges report them phase by phase.',
    align: 'right',
    cell: ({ bytesPerSecond }) => `${formatBytes(bytesPerSecond)}/s`,
  },
]

export function EdgesPanel({ edges }: { edges: StormEdge[] }) {
  const total = edges.reduce((sum, { bytesPerSecond }) => sum + bytesPerSecond, 0)
  return (
    <Panel title="Edges" flush aside={`${formatBytes(total)}/s over the last minute`}>
      {edges.length === 0 ? (
        <EmptyState title="No edge has booted a device." text="Edges appear here with the first boot in this time." />
      ) : (
        <Table label="Edges of these boots" columns={edgeColumns} rows={edges} rowKey={({ id }) => id} />
      )}
    </Panel>
  )
}
