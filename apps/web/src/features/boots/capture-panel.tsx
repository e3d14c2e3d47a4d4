'use client'

import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { Icon } from '../../components/icon'
import { Age } from '../../components/instant'
import { ErrorState, Facts, LoadingState, Panel, Skeleton } from '../../components/page'
import { type Column, Table } from '../../components/table'
import { Mono } from '../../components/tag'
import { countOf, formatBytes, formatCount, formatOffset } from '../../lib/format-quantity'
import { type RouterOutputs, readableError, useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'
import type { BootDetail } from './boot-types'

type CapturedPacket = NonNullable<RouterOutputs['boot']['capture']>['packets'][number]
type Row = CapturedPacket & { key: string }

const directions: Record<CapturedPacket['direction'], { arrow: string; word: string }> = {
  from_device: { arrow: '→', word: 'from the device' },
  to_device: { arrow: '←', word: 'to the device' },
  other: { arrow: '·', word: 'others' },
}

const columns: Column<Row>[] = [
  {
    title: 'Offset',
    meaning: 'Since the first packet in the file',
    align: 'right',
    cell: ({ atUs }) => secondsOf(atUs),
  },
  {
    title: 'Direction',
    cell: ({ direction }) => (
      <span className="text-ink-soft">
        <span aria-hidden="true">{directions[direction].arrow}</span>{' '}
        <span className="max-sm:sr-only">{directions[direction].word}</span>
      </span>
    ),
  },
  { title: 'Packet', wide: true, cell: ({ what }) => <Mono>{what}</Mono> },
  { title: 'Size', align: 'right', from: 'md', cell: ({ sizeBytes }) => `${formatCount(sizeBytes)} B` },
]

/** All with a tenth of a millisecond, so that they align in a column. */
function secondsOf(atUs: number): string {
  return `${(atUs / 1_000_000).toFixed(4)}\u00a0s`
}

/** The packets that were kept of the boot, to read here or to save; nothing where none were. */
export function CapturePanel({ boot }: { boot: BootDetail }) {
  const mayRead = useMay('boot.inspect')
  const [open, setOpen] = useState(false)
  const { capture } = boot
  if (!capture) return null
  return (
    <Panel
      title="Packet capture"
      aside={
        <>
          <span>
            {countOf(capture.packetCount, 'packet')}, {formatBytes(capture.sizeBytes)}
          </span>
          {mayRead && (
            <>
              <Button small aria-expanded={open} onClick={() => setOpen(!open)}>
                {open ? 'Hide packets' : 'Show packets'}
              </Button>
              <a
                href={`/api/v1/boots/${boot.id}/capture.pcap`}
                download
                className="inline-flex h-7 items-center gap-1.5 whitespace-nowrap rounded-md border border-line-strong px-3 font-medium text-ink text-sm hover:bg-hover"
              >
                <Icon name="download" size={14} /> Download pcap
              </a>
            </>
          )}
        </>
      }
      flush
    >
      {open ? (
        <Packets bootId={boot.id} packetCount={capture.packetCount} />
      ) : (
        <p className="px-4 py-3 text-ink-soft text-sm">
          Packets between the device and the edge before OS disk streaming
          {mayRead ? '.' : '. Operators can view and download them.'}
        </p>
      )}
    </Panel>
  )
}

function Packets({ bootId, packetCount }: { bootId: string; packetCount: number }) {
  const query = useQuery(useTRPC().boot.capture.queryOptions({ bootId }))
  if (query.isPending) {
    return (
      <LoadingState label="Loading packets">
        <Skeleton className="m-4 h-40" />
      </LoadingState>
    )
  }
  if (!query.data) {
    const text = query.error ? readableError(query.error) : 'The packet capture is no longer stored.'
    return <ErrorState title="Could not load the packet capture." text={text} onRetry={() => query.refetch()} />
  }
  const rows = query.data.packets.map((packet, index) => ({ ...packet, key: String(index) }))
  return (
    <div className="max-h-[32rem] overflow-y-auto">
      <Table label="Captured packets" columns={columns} rows={rows} rowKey={({ key }) => key} />
      {rows.length < packetCount && (
        <p className="border-line border-t px-4 py-2 text-ink-soft text-xs">
          First {formatCount(rows.length)} packets. Download the file to see all.
        </p>
      )}
    </div>
  )
}

type NamedPacket = NonNullable<NonNullable<BootDetail['lastPackets']>['fromDevice']>

/** The last packet each way of a boot that did not get ready: who was silent. */
export function LastPackets({ packets }: { packets: BootDetail['lastPackets'] }) {
  if (!packets) return null
  return (
    <Panel title="Last packets">
      <Facts
        facts={[
          {
            label: 'From the device',
            value: packets.fromDevice ? <Packet packet={packets.fromDevice} /> : 'none received',
          },
          {
            label: 'From the edge',
            value: packets.fromEdge ? <Packet packet={packets.fromEdge} /> : 'none sent',
          },
        ]}
      />
    </Panel>
  )
}

function Packet({ packet: { what, atUs, at } }: { packet: NamedPacket }) {
  return (
    <>
      <Mono>{what}</Mono>
      <span className="block text-ink-soft text-xs">
        at +{formatOffset(atUs)}, <Age at={at} />
      </span>
    </>
  )
}
