'use client'

import { useQuery } from '@tanstack/react-query'
import { Notice } from '../../components/field'
import { Icon } from '../../components/icon'
import { Instant } from '../../components/instant'
import { LoadingState, Page, PageHeader, Panel, Skeleton, Unknown } from '../../components/page'
import { type Column, Table } from '../../components/table'
import { Mono, Tag } from '../../components/tag'
import { countOf, formatBytes, formatOffset } from '../../lib/format-quantity'
import { useTRPC } from '../../lib/trpc'
import { BootAgain } from '../devices/boot-again'
import { WaitNotice } from '../devices/wait-notice'
import { WriteCacheMeter, WriteCacheNotice } from '../devices/write-cache'
import { writeCachePlace } from '../devices/write-cache-meaning'
import { PageName, QueryError } from '../shell/object-page'
import { BootFacts } from './boot-facts'
import type { BootDetail } from './boot-types'
import { BootVerdict } from './boot-verdict'
import { CapturePanel, LastPackets } from './capture-panel'
import { FilesPanel } from './files/files-panel'
import { NetworkPanel } from './network-panel'
import { offerKinds, offersSentence } from './offers'
import { BootDuration, OriginTags, OutcomeTag } from './outcome-tag'
import { CriticalPath } from './path/critical-path'
import { baselineOf } from './path/usual'
import { PhaseTable, StepTable } from './phase-table'
import { ReadSizeHistogram, ReadTimesTable, readSizeRows } from './read-times-table'
import { TransfersPanel } from './transfers/transfers-panel'
import { BootWaterfall } from './waterfall/boot-waterfall'

/** Earlier boots do not change while one is looked at. */
const earlierBoots = { staleTime: Number.POSITIVE_INFINITY }

/** Live updates write each change of the open boot into this query: the page requests nothing after its first load. */
export function BootPage({ bootId }: { bootId: string }) {
  const trpc = useTRPC()
  const query = useQuery(trpc.boot.get.queryOptions({ bootId }))
  if (query.data) return <Boot boot={query.data} />
  if (query.isPending) return <BootSkeleton />
  return <QueryError noun="boot" error={query.error} onRetry={() => query.refetch()} />
}

function Boot({ boot }: { boot: BootDetail }) {
  const { data: usual } = useQuery(useTRPC().boot.usual.queryOptions({ bootId: boot.id }, earlierBoots))
  const name = boot.deviceName ?? boot.mac
  const readSizes = readSizeRows(boot.phases)
  const isUnsuccessful = boot.outcome === 'failed' || boot.outcome === 'silent'
  return (
    <Page>
      <PageName name={`Boot of ${name}`} />
      <PageHeader
        title={`Boot of ${name}`}
        tags={
          <>
            <OutcomeTag outcome={boot.outcome} phase={boot.outcome ? boot.failedPhase : boot.lastPhase} />
            <OriginTags {...boot} />
          </>
        }
        summary={<Summary boot={boot} />}
        actions={boot.deviceId && <BootAgain deviceId={boot.deviceId} />}
      />
      <BootVerdict boot={boot} />
      {boot.waitsFor && <WaitNotice wait={boot.waitsFor} />}
      {boot.detailGone && <DetailGone keptDays={boot.detailGone.keptDays} />}
      {boot.writeCache && <WriteCacheNotice cache={boot.writeCache} at={boot.guest?.writeCacheAt ?? null} />}
      <CriticalPath key={boot.id} boot={boot} baseline={baselineOf(usual)} />
      <BootWaterfall key={`timeline of ${boot.id}`} boot={boot} usual={usual} />
      {isUnsuccessful && <Exchange boot={boot} />}
      <TransfersPanel boot={boot} />
      {boot.readTimes && (
        <Panel title="Disk read latency" flush>
          <ReadTimesTable readTimes={boot.readTimes} running={boot.outcome === null} />
        </Panel>
      )}
      {!boot.detailGone && (
        <Panel title="Phase details" flush>
          <PhaseTable phases={boot.phases} running={boot.outcome === null} totalUs={boot.totalUs} />
        </Panel>
      )}
      {boot.guest && boot.guest.steps.length > 0 && (
        <Panel title="OS boot steps" flush>
          <StepTable steps={boot.guest.steps} />
        </Panel>
      )}
      <FilesPanel bootId={boot.id} isOver={boot.outcome !== null} />
      {!isUnsuccessful && <Exchange boot={boot} />}
      <CapturePanel boot={boot} />
      <div className="grid items-start gap-5 lg:grid-cols-2">
        <Panel title="Details" className="lg:row-span-2">
          <BootFacts boot={boot} />
        </Panel>
        <NetworkPanel boot={boot} />
        <WriteCachePanel boot={boot} />
        {readSizes.length > 0 && (
          <Panel title="Reads by size" aside="upper limit of each size, as sent over the network">
            <ReadSizeHistogram rows={readSizes} />
          </Panel>
        )}
      </div>
    </Page>
  )
}

/** What passed between device and servers at the start: the first thing to look at where a boot failed. */
function Exchange({ boot }: { boot: BootDetail }) {
  return (
    <>
      <LastPackets packets={boot.lastPackets} />
      <OffersPanel boot={boot} />
    </>
  )
}

function WriteCacheAt({ boot: { guest } }: { boot: BootDetail }) {
  if (!guest?.writeCacheAt) return null
  return (
    <span>
      reported <Instant at={guest.writeCacheAt} />
    </span>
  )
}

function Summary({ boot }: { boot: BootDetail }) {
  return (
    <span className="flex flex-wrap gap-x-4 gap-y-1">
      <Instant at={boot.startedAt} full />
      <span className="font-medium text-ink">
        <BootDuration boot={boot} />
      </span>
      <span>{formatBytes(boot.bytesOut)} sent</span>
      {boot.retries > 0 && <span>{boot.retries} retries</span>}
    </span>
  )
}

function BootSkeleton() {
  return (
    <LoadingState label="Loading boot">
      <Page>
        <Skeleton className="h-7 w-64" />
        <Skeleton className="h-72 w-full rounded-lg" />
        <Skeleton className="h-64 w-full rounded-lg" />
      </Page>
    </LoadingState>
  )
}

/** Names the parts of a boot that are deleted after their retention. */
function DetailGone({ keptDays }: { keptDays: number }) {
  return (
    <section aria-label="Boot details expired" className="flex gap-3 rounded-lg bg-hover px-4 py-3 text-ink-soft">
      <span className="pt-0.5">
        <Icon name="alert" />
      </span>
      <div className="min-w-0 text-sm">
        <p className="font-medium">The details of this boot have expired.</p>
        <p className="mt-0.5">
          Boot details are kept for {keptDays} days. The outcome and the times of the phases remain. Phase details, OS
          boot steps, DHCP offers, packets and device details are deleted.
        </p>
      </div>
    </section>
  )
}

type Row = BootDetail['offers'][number] & { key: string }

const mono = (text: string | null, label: string) => (text ? <Mono>{text}</Mono> : <Unknown label={label} />)

const columns: Column<Row>[] = [
  {
    title: 'Server',
    cell: ({ server, ours }) => (
      <span className="inline-flex items-center gap-2">
        <Mono>{server}</Mono>
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
function OffersPanel({ boot }: { boot: BootDetail }) {
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

function WriteCachePanel({ boot }: { boot: BootDetail }) {
  if (!boot.writeCache) return null
  return (
    <Panel title="Write cache" aside={<WriteCacheAt boot={boot} />}>
      <WriteCacheMeter
        cache={boot.writeCache}
        note={
          boot.isLastBoot
            ? `Write cache: ${writeCachePlace(boot.writeCache)}.`
            : 'State at the end of this boot. The device has booted again since.'
        }
      />
    </Panel>
  )
}
