'use client'

import { useMutation, useQuery } from '@tanstack/react-query'
import Link from 'next/link'
import { TextLink } from '../../components/button'
import { Instant } from '../../components/instant'
import { EmptyState, Facts, LoadingState, Page, PageHeader, Panel, Skeleton } from '../../components/page'
import { Mono, Tag } from '../../components/tag'
import { useFailureToast } from '../../components/toast'
import { type RouterOutputs, useRefresh, useTRPC } from '../../lib/trpc'
import { HistoryPanel } from '../audit/history-panel'
import { DeviceMenu } from '../boot-menus/device-menu'
import { BootProgramChoice } from '../boot-programs/boot-program-choice'
import { BootList } from '../boots/boot-list'
import { OriginTags } from '../boots/outcome-tag'
import { CaptureDisk, CapturePanel, useCapture } from '../disk-captures/capture-panel'
import { isActive } from '../disk-captures/capture-text'
import { useMay } from '../session/use-may'
import { PageName, QueryError } from '../shell/object-page'
import { BootAgain } from './boot-again'
import { DeviceActions, DevicePersonality } from './device-actions'
import { DeviceHomePanel, isHomeMoving } from './device-home'
import { DeviceKeyPanel, KeyNotice, KeyTag } from './device-key'
import { DeviceLayerPanel } from './device-layer'
import { DeviceStateFact, DeviceStateTag } from './device-state'
import { DeviceTypeTag, deviceTypeText } from './device-type'
import { PowerButtons } from './power-buttons'
import { PowerOrderNote } from './power-order-note'
import { takesOrders } from './power-text'
import { WaitNotice } from './wait-notice'
import { WriteCacheMeter, WriteCacheNotice } from './write-cache'
import { writeCachePlace } from './write-cache-meaning'

type DeviceDetail = RouterOutputs['device']['get']

/** How soon the page learns that an order was taken or has expired, or that an edge has released the device or not. */
const orderRefreshMs = 2000

export function DevicePage({ deviceId }: { deviceId: string }) {
  const trpc = useTRPC()
  const query = useQuery(
    trpc.device.get.queryOptions(
      { deviceId },
      {
        refetchInterval: ({ state }) =>
          state.data?.powerOrder?.state === 'waiting' || (state.data && isHomeMoving(state.data))
            ? orderRefreshMs
            : false,
      },
    ),
  )
  if (query.data) return <Device device={query.data} />
  if (query.isPending) return <DeviceSkeleton />
  return <QueryError noun="device" error={query.error} onRetry={() => query.refetch()} />
}

function Device({ device }: { device: DeviceDetail }) {
  const capture = useCapture(device.id)
  // A machine that is off fills no write cache, even if its last report shows a fill level. One whose disk is captured
  // reports its copy in that place, which has a panel.
  const hasNone = device.now.state === 'off' || (capture !== null && isActive(capture))
  const cache = hasNone ? null : (device.lastBoot?.writeCache ?? null)
  return (
    <Page>
      <PageName name={device.name} />
      <PageHeader
        title={device.name}
        tags={
          <>
            <DeviceStateTag device={device} />
            {device.lastBoot?.simulated && <OriginTags simulated generated={false} />}
            <DeviceTypeTag type={device.deviceType} />
            <KeyTag label={device.keyLabel} />
            {!device.enabled && <Tag>disabled</Tag>}
          </>
        }
        summary={<Mono>{device.mac}</Mono>}
        actions={<HeaderActions device={device} />}
      />
      {device.powerOrder && <PowerOrderNote order={device.powerOrder} />}
      <KeyNotice device={device} />
      {device.waitsFor && <WaitNotice wait={device.waitsFor} />}
      {cache && <WriteCacheNotice cache={cache} at={null} />}
      <div className="grid items-start gap-5 xl:grid-cols-[1fr_300px]">
        <Panel title="Boots of this device" flush className="order-last xl:order-first">
          <BootList
            input={{ deviceId: device.id, limit: 25 }}
            empty={
              <EmptyState
                title="No boots yet."
                text="Wake or power on the device. Its boot appears here with its first packet."
              />
            }
          />
        </Panel>
        <div className="grid gap-5 sm:max-xl:grid-cols-2">
          {cache && device.lastBoot && <LastWriteCache cache={cache} reportedAt={device.lastBoot.reportedAt} />}
          <CapturePanel device={device} />
          <DeviceKeyPanel device={device} />
          <DeviceLayerPanel device={device} />
          <DeviceHomePanel device={device} />
          <Panel title="Details">
            <DeviceFacts device={device} />
          </Panel>
          <DevicePersonality device={device} />
          <DeviceMenu device={device} />
          <DeviceBootPrograms device={device} />
        </div>
      </div>
      <HistoryPanel objectId={device.id} />
    </Page>
  )
}

function HeaderActions({ device }: { device: DeviceDetail }) {
  return (
    <>
      {takesOrders(device) && <PowerButtons device={device} />}
      <BootAgain deviceId={device.id} />
      <CaptureDisk device={device} />
      <DeviceActions device={device} />
    </>
  )
}

function DeviceFacts({ device }: { device: DeviceDetail }) {
  const { vdisk } = device
  const link = 'rounded underline decoration-line-strong underline-offset-4 hover:decoration-ink'
  return (
    <Facts
      facts={[
        { label: 'Status', value: <DeviceStateFact device={device} /> },
        { label: 'Last report', value: device.lastBoot && <Instant at={device.lastBoot.reportedAt} /> },
        {
          label: 'Assigned image',
          value: vdisk ? (
            <Link prefetch={false} href={`/vdisks/${vdisk.id}`} className={link}>
              {vdisk.name} version {vdisk.versionNumber}
            </Link>
          ) : (
            'none (the collection has no vDisk)'
          ),
        },
        { label: 'Type', value: deviceTypeText(device.deviceType) },
        {
          label: 'Collection',
          value: <TextLink href={`/collections/${device.collectionId}`}>{device.collectionName}</TextLink>,
        },
        {
          label: 'Site',
          value: (
            <Link prefetch={false} href={`/sites/${device.siteId}`} className={link}>
              {device.siteName}
            </Link>
          ),
        },
        { label: 'Enabled', value: device.enabled ? 'yes' : 'Disabled (not served)' },
        { label: 'Created', value: <Instant at={device.createdAt} /> },
      ]}
    />
  )
}

function DeviceSkeleton() {
  return (
    <LoadingState label="Loading device">
      <Page>
        <Skeleton className="h-7 w-56" />
        <Skeleton className="h-96 w-full rounded-lg" />
      </Page>
    </LoadingState>
  )
}

/** Which programs the device's firmware is given first. */
function DeviceBootPrograms({ device }: { device: DeviceDetail }) {
  const trpc = useTRPC()
  const { device: own, collection, site } = device.bootProgramSets
  const choose = useMutation(
    trpc.device.setBootProgramSet.mutationOptions({
      onSuccess: useRefresh(trpc.device.get.queryFilter({ deviceId: device.id })),
      onError: useFailureToast(`Could not update ${device.name}.`),
    }),
  )
  return (
    <Panel title="Boot program set">
      <BootProgramChoice
        label="Set"
        siteId={device.siteId}
        value={own}
        inherited={inheritedText(collection, site)}
        inheritedSet={collection ?? site}
        mayChange={useMay('device.change')}
        onChoose={(bootProgramSet) => choose.mutate({ deviceId: device.id, bootProgramSet })}
      />
    </Panel>
  )
}

function inheritedText(collection: string | null, site: string | null): string {
  if (collection !== null) return `Inherit from collection (${collection})`
  return site === null ? 'Inherit from site (edge default)' : `Inherit from site (${site})`
}

interface LastWriteCacheProps {
  cache: NonNullable<NonNullable<DeviceDetail['lastBoot']>['writeCache']>
  reportedAt: string
}

function LastWriteCache({ cache, reportedAt }: LastWriteCacheProps) {
  return (
    <Panel title="Write cache">
      <WriteCacheMeter
        cache={cache}
        note={
          <>
            Write cache: {writeCachePlace(cache)}. Reported at <Instant at={reportedAt} />.
          </>
        }
      />
    </Panel>
  )
}
