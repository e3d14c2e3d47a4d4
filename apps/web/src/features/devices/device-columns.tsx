import Link from 'next/link'
import { ObjectLink, TextLink } from '../../components/button'
import { Age } from '../../components/instant'
import { Unknown } from '../../components/page'
import type { Column } from '../../components/table'
import { Tag } from '../../components/tag'
import type { Listed } from '../../lib/trpc'
import { BootDuration, OriginTags, OutcomeTag } from '../boots/outcome-tag'
import { KeyTag } from './device-key'
import { DeviceStateCell } from './device-state'
import { DeviceTypeTag } from './device-type'
import { PowerMenu } from './power-buttons'
import { PowerOrderTag } from './power-order-note'
import { takesOrders } from './power-text'
import { WaitTag } from './wait-notice'
import { WriteCacheTag } from './write-cache'

type DeviceSummary = Listed<'device'>

export const deviceColumns: Column<DeviceSummary>[] = [
  {
    title: 'Name',
    sort: 'name',
    cell: (device) => (
      <span className="inline-flex flex-wrap items-center gap-x-2 gap-y-1 max-sm:max-w-40 sm:min-w-36">
        <ObjectLink href={`/devices/${device.id}`}>{device.name}</ObjectLink>
        {device.lastBoot?.simulated && <OriginTags simulated generated={false} />}
        <DeviceTypeTag type={device.deviceType} />
        <WriteCacheTag cache={device.now.state === 'off' ? null : (device.lastBoot?.writeCache ?? null)} />
        <WaitTag wait={device.waitsFor} />
        <KeyTag label={device.keyLabel} quiet />
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
  {
    title: 'Collection',
    from: 'lg',
    cell: (device) => (
      <TextLink quiet href={`/collections/${device.collectionId}`}>
        {device.collectionName}
      </TextLink>
    ),
  },
  {
    title: 'Site',
    from: 'xl',
    cell: (device) => (
      <TextLink quiet href={`/sites/${device.siteId}`}>
        {device.siteName}
      </TextLink>
    ),
  },
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
    sort: 'lastBootStartedAt',
    from: 'sm',
    align: 'right',
    cell: ({ lastBoot }) => (lastBoot ? <Age at={lastBoot.startedAt} /> : <Unknown />),
  },
  {
    title: 'Power',
    align: 'right',
    cell: (device) =>
      takesOrders(device) ? (
        <span className="inline-flex">
          <PowerMenu device={device} />
        </span>
      ) : (
        <Unknown label="power control unavailable" />
      ),
  },
]

/** Of devices of one collection, which need no column for it. */
export const deviceColumnsOfCollection = deviceColumns
  .filter(({ title }) => title !== 'Collection' && title !== 'Site')
  .map(({ sort: _none, ...column }) => column)
