import { Notice } from '../../components/field'
import { Panel, Unknown } from '../../components/panel'
import { type Column, Table } from '../../components/table'
import { Tag } from '../../components/tag'
import { countOf, formatOffset } from '../../lib/format-quantity'
import type { BootDetail } from './boot-types'
import { offerKinds, offersSentence } from './offers'

type Row = BootDetail['offers'][number] & { key: string }

const mono = (text: string | null, label: string) =>
  text ? <span className="font-mono text-xs">{text}</span> : <Unknown label={label} />

const columns: Column<Row>[] = [
  {
    title: 'Server',
    cell: ({ server, ours }) => (
      <span className="inline-flex items-center gap-2">
        <span className="font-mono text-xs">{server}</span>
        {ours ? <Tag tone="ready">this edge</Tag> : <Tag>other</Tag>}
      </span>
    ),
  },
  {
    title: 'At',
    meaning: 'Since the boot’s first packet',
    align: 'right',
    cell: ({ atUs }) => formatOffset(atUs),
  },
  {
    title: 'Offers',
    cell: ({ kind }) => <span title={offerKinds[kind].meaning}>{offerKinds[kind].word}</span>,
  },
  { title: 'Address', from: 'md', cell: ({ yourIp }) => mono(yourIp, 'none') },
  { title: 'Boot file', wide: true, cell: ({ file }) => mono(file, 'none') },
  { title: 'Next server', from: 'md', cell: ({ nextServer }) => mono(nextServer, 'none') },
  { title: 'Relay', from: 'xl', cell: ({ relay }) => mono(relay, 'none') },
]

/** Every DHCP offer that was heard on the device's segment before its first download; nothing where none was. */
export function OffersPanel({ boot }: { boot: BootDetail }) {
  if (boot.offers.length === 0) return null
  const rows = boot.offers.map((offer, index) => ({ ...offer, key: String(index) }))
  const sentence = offersSentence(boot)
  return (
    <Panel title="DHCP offers heard" aside={countOf(rows.length, 'offer')} flush>
      {sentence && (
        <div className="border-line border-b p-3">
          <Notice tone="silent">{sentence}</Notice>
        </div>
      )}
      <Table label="DHCP offers heard" columns={columns} rows={rows} rowKey={({ key }) => key} />
    </Panel>
  )
}
