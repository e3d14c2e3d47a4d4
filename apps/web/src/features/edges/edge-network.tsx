import { Panel } from '../../components/panel'
import { EmptyState } from '../../components/states'
import { type Column, Table } from '../../components/table'
import type { RouterOutputs } from '../../lib/trpc'

type EdgeDetail = RouterOutputs['edge']['get']
type Interface = EdgeDetail['interfaces'][number]

const interfaceColumns: Column<Interface>[] = [
  { title: 'Name', cell: ({ name }) => <span className="font-mono text-xs">{name}</span> },
  {
    title: 'Address',
    wide: true,
    cell: ({ ip, prefixLength }) => <span className="font-mono text-xs">{`${ip}/${prefixLength}`}</span>,
  },
  { title: 'MTU', align: 'right', cell: ({ mtu }) => `${mtu} B` },
]

/** Where it stands in its networks, as its last heartbeat said. */
export function EdgeNetwork({ edge: { address, interfaces } }: { edge: EdgeDetail }) {
  const others = interfaces.flatMap(({ name, mtu, otherMtus }) =>
    otherMtus.map((other) => ({ ...other, name, own: mtu })),
  )
  return (
    <Panel
      title="Interfaces"
      aside={
        address && (
          <span>
            devices reach it at <span className="font-mono">{address}</span>
          </span>
        )
      }
      flush
    >
      {interfaces.length === 0 ? (
        <EmptyState title="Not said." text="This edge has not reported its interfaces." />
      ) : (
        <Table
          label="Interfaces"
          columns={interfaceColumns}
          rows={interfaces}
          rowKey={(row) => `${row.name} ${row.ip}`}
        />
      )}
      {others.map(({ edgeId, edgeName, name, own, mtu }) => (
        <p
          key={`${edgeId} ${name} ${mtu}`}
          className="border-line border-t bg-silent-soft px-4 py-2 text-silent text-xs"
        >
          {name} has an MTU of {own} B, {edgeName} one of {mtu} B in the same network: large packets of one may not
          reach devices behind the other. Set both alike, and the switches between them.
        </p>
      ))}
    </Panel>
  )
}
