import Link from 'next/link'
import { Age } from '../../components/instant'
import { Unknown } from '../../components/panel'
import type { Column } from '../../components/table'
import { Tag } from '../../components/tag'
import type { RouterOutputs } from '../../lib/trpc'
import { BootDuration } from '../boots/boot-duration'
import { OriginTags, OutcomeTag } from '../boots/outcome-tag'
import { DeviceStateCell } from './device-state'
import { DeviceTypeTag } from './device-type'
import { PowerMenu } from './power-buttons'
import { PowerOrderTag } from './power-order-note'
import { WaitTag } from './wait-notice'
import { WriteCacheTag } from './write-cache'

type DeviceSummary = RouterOutputs['device']['list']['items'][number]

export const deviceColumns: Column<DeviceSummary>[] = [
  {
    title: 'Name',
    cell: (device) => (
      <span className="inline-flex flex-wrap items-center gap-x-2 gap-y-1 max-sm:max-w-40 sm:min-w-36">
        <Link
          prefetch={false}
          href={`/devices/${device.id}`}
          className="rounded font-medium text-ink underline-offset-4 hover:underline"
        >
          {device.name}
        </Link>
        {device.lastBoot?.simulated && <OriginTags simulated generated={false} />}
        <DeviceTypeTag type={device.deviceType} />
        <WriteCacheTag cache={device.now.state === 'off' ? null : (device.lastBoot?.writeCache ?? null)} />
        <WaitTag wait={device.waitsFor} />
        <PowerOrderTag order={device.powerOrder} />
        {!device.enabled && <Tag title="Edges do not serve this device.">disabled</Tag>}
      </span>
    ),
  },
  {
    title: 'MAC address',
    from: 'lg',
    cell: (device) => <span className="font-mono text-ink-soft text-xs">{device.mac}</span>,
  },
  { title: 'Collection', from: 'lg', cell: (device) => device.collectionName },
  { title: 'Site', from: 'xl', cell: (device) => device.siteName },
  {
    title: 'vDisk',
    from: 'lg',
    wide: true,
    cell: ({ vdisk }) =>
      vdisk ? (
        <Link prefetch={false} href={`/vdisks/${vdisk.id}`} className="rounded underline-offset-4 hover:underline">
          {vdisk.name} <span className="text-ink-soft">v{vdisk.versionNumber}</span>
        </Link>
      ) : (
        <Unknown label="none" />
      ),
  },
  { title: 'Status', cell: (device) => <DeviceStateCell device={device} /> },
  {
    title: 'Last boot',
    from: 'md',
    cell: ({ lastBoot }) =>
      lastBoot ? (
        <Link prefetch={false} href={`/boots/${lastBoot.id}`} className="rounded-full">
          <OutcomeTag outcome={lastBoot.outcome} />
        </Link>
      ) : (
        <span className="text-ink-faint">never</span>
      ),
  },
  {
    title: 'Duration',
    from: '2xl',
    align: 'right',
    cell: ({ lastBoot }) => (lastBoot ? <BootDuration boot={lastBoot} /> : <Unknown />),
  },
  {
    title: 'When',
    from: 'sm',
    align: 'right',
    cell: ({ lastBoot }) => (lastBoot ? <Age at={lastBoot.startedAt} /> : <Unknown />),
  },
  {
    title: 'Power',
    align: 'right',
    cell: (device) =>
      device.now.state === 'running' ? (
        <span className="inline-flex">
          <PowerMenu device={device} />
        </span>
      ) : (
        <Unknown label="power control unavailable" />
      ),
  },
]
