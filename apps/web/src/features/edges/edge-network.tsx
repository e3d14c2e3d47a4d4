import { Panel } from '../../components/panel'
import { EmptyState } from '../../components/states'
import { type Column, Table } from '../../components/table'
import type { RouterOutputs } from '../../lib/trpc'

type EdgeDetail = RouterOutputs['edge']['get']
type Interface = EdgeDetail['interfaces'][number]

const interfaceColumns: Column<Interface>[] = [
  { title: 'Name', cell: ({ name }) => <span className="font-mono text-xs">{name}</span> },
  {
    title: 'IP address',
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
            devices connect to <span className="font-mono">{address}</span>
          </span>
        )
      }
      flush
    >
      {interfaces.length === 0 ? (
        <EmptyState title="Not reported." text="This edge has not reported its interfaces." />
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
          The MTU of {name} is {own} B, but the MTU of {edgeName} in the same network is {mtu} B. Large packets may not
          reach devices. Set the same MTU on both edges and on the switches between them.
        </p>
      ))}
    </Panel>
  )
}
