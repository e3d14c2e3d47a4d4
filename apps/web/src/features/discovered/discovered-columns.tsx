import { Button } from '../../components/button'
import { Age } from '../../components/instant'
import { Unknown } from '../../components/page'
import type { Column } from '../../components/table'
import { formatCount } from '../../lib/format-quantity'
import type { Listed } from '../../lib/trpc'
import { architecture } from '../boots/architecture'

export type Discovered = Listed<'discovered'>

interface ColumnOptions {
  selected: ReadonlySet<string>
  onSelect: (device: Discovered, selected: boolean) => void
  /** Absent for those who may only look. */
  onAdopt: ((device: Discovered) => void) | undefined
}

const protocols = { dhcp: 'DHCP', tftp: 'TFTP', http: 'HTTP' } as const

export function discoveredColumns({ selected, onSelect, onAdopt }: ColumnOptions): Column<Discovered>[] {
  const actions: Column<Discovered>[] = onAdopt
    ? [
        {
          title: 'Action',
          align: 'right',
          cell: (device) => (
            <Button small aria-label={`Adopt ${device.mac}`} onClick={() => onAdopt(device)}>
              Adopt
            </Button>
          ),
        },
      ]
    : []
  return [
    {
      title: 'Machine',
      cell: (device) => (
        <span className="inline-flex items-center gap-3">
          {onAdopt && (
            <input
              type="checkbox"
              aria-label={`Select ${device.mac}`}
              checked={selected.has(device.id)}
              onChange={(event) => onSelect(device, event.target.checked)}
              className="size-4 accent-(--ink)"
            />
          )}
          <span className="inline-flex flex-col">
            <span className="font-mono text-ink text-xs">{device.mac}</span>
            {device.hostName && (
              <span className="max-w-40 truncate text-ink-faint text-xs" title="Name reported by the machine.">
                “{device.hostName}”
              </span>
            )}
          </span>
        </span>
      ),
    },
    firmwareColumn,
    protocolColumn,
    { title: 'Site', from: 'xl', cell: (device) => device.siteName },
    { title: 'Requests', from: 'lg', align: 'right', cell: (device) => formatCount(device.requests) },
    { title: 'First seen', from: 'md', align: 'right', cell: (device) => <Age at={device.firstSeenAt} /> },
    { title: 'Last seen', from: 'sm', align: 'right', cell: (device) => <Age at={device.lastSeenAt} /> },
    ...actions,
  ]
}

const firmwareColumn: Column<Discovered> = {
  title: 'Firmware',
  from: 'sm',
  wide: true,
  cell: (device) => (
    <span className="inline-flex max-w-72 flex-col">
      <span>{architecture(device.clientArch) ?? <Unknown />}</span>
      {device.vendorClass && (
        <span className="truncate font-mono text-2xs text-ink-faint" title={device.vendorClass}>
          {device.vendorClass}
        </span>
      )}
    </span>
  ),
}

const protocolColumn: Column<Discovered> = {
  title: 'Protocol',
  from: 'md',
  cell: (device) => (
    <span className="inline-flex flex-col">
      <span>
        {protocols[device.asked]}
        {device.ip && <span className="text-ink-soft"> from {device.ip}</span>}
      </span>
      {device.relay && <span className="text-ink-faint text-xs">via relay {device.relay}</span>}
    </span>
  ),
}
