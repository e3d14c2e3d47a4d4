'use client'

import { useQuery } from '@tanstack/react-query'
import Link from 'next/link'
import { Age, Instant } from '../../components/instant'
import { EmptyState, Facts, LoadingState, Page, PageHeader, Panel, Skeleton } from '../../components/page'
import { PageLink } from '../../components/page-link'
import { type Column, Table } from '../../components/table'
import { Mono, Tag } from '../../components/tag'
import { countOf, formatClockOffset, formatCount, formatDuration } from '../../lib/format-quantity'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { HistoryPanel } from '../audit/history-panel'
import { BootProgramTable } from '../boot-programs/boot-program-table'
import { BootList } from '../boots/boot-list'
import { CleaningPanel } from '../cleaning/cleaning-panel'
import { EdgeLoadPanel } from '../load/load-panel'
import { PageName, QueryError } from '../shell/object-page'
import { SpacePanel } from '../space/space-panel'
import { JobsPanel } from '../store-jobs/jobs-panel'
import { EdgeActions } from './edge-actions'
import { EdgeState } from './edge-columns'
import { EdgeImages } from './edge-images'
import { DiskProblems, EdgeMachine, StateRefused, StoreErrors, VersionRefused } from './edge-machine'
import { heartbeatRefreshMs } from './heartbeat-refresh'
import { releaseText } from './release-text'
import { SharePanel } from './share-panel'

type EdgeDetail = RouterOutputs['edge']['get']

export function EdgePage({ edgeId }: { edgeId: string }) {
  const trpc = useTRPC()
  const query = useQuery(trpc.edge.get.queryOptions({ edgeId }, { refetchInterval: heartbeatRefreshMs }))
  if (query.data) return <Edge edge={query.data} />
  if (query.isPending) return <EdgeSkeleton />
  return <QueryError noun="edge" error={query.error} onRetry={() => query.refetch()} />
}

function Edge({ edge }: { edge: EdgeDetail }) {
  return (
    <Page>
      <PageName name={edge.name} />
      <PageHeader
        title={edge.name}
        tags={
          <>
            <EdgeState edge={edge} />
            {edge.draining && <Tag tone="silent">draining</Tag>}
          </>
        }
        actions={<EdgeActions edge={edge} />}
        summary={
          <>
            Site{' '}
            <Link
              prefetch={false}
              href={`/sites/${edge.siteId}`}
              className="underline decoration-line-strong underline-offset-4"
            >
              {edge.siteName}
            </Link>
          </>
        }
      />
      <div className="grid items-start gap-5 lg:grid-cols-2">
        <div className="flex min-w-0 flex-col gap-5">
          {edge.refused && <VersionRefused refused={edge.refused} />}
          {edge.stateRefused && <StateRefused reason={edge.stateRefused} />}
          <DiskProblems problems={edge.problems} />
          {edge.storeErrors.length > 0 && <StoreErrors errors={edge.storeErrors} />}
          <LostReports edge={edge} />
          <Panel title="Status">
            <EdgeFacts edge={edge} />
          </Panel>
          <EdgeMachine machine={edge.machine} />
          <EdgeNetwork edge={edge} />
        </div>
        <div className="flex min-w-0 flex-col gap-5">
          <SharePanel edge={edge} />
          <EdgeStore edge={edge} />
          <IgnoredPackets ignored={edge.ignored} />
        </div>
      </div>
      <EdgeLoadPanel edgeId={edge.id} />
      <EdgeImages edge={edge} />
      <JobsPanel of={{ edgeId: edge.id }} />
      <Panel title="Boot programs" flush>
        <BootProgramTable programs={edge.bootPrograms} />
      </Panel>
      <EdgeBoots edgeId={edge.id} />
      <HistoryPanel objectId={edge.id} />
    </Page>
  )
}

function EdgeBoots({ edgeId }: { edgeId: string }) {
  return (
    <Panel
      title="Boots on this edge"
      flush
      aside={
        <PageLink href={`/boots?edge=${edgeId}`} className="rounded underline-offset-4 hover:underline">
          All boots
        </PageLink>
      }
    >
      <BootList
        input={{ edgeId, limit: 10 }}
        empty={<EmptyState title="No boots yet." text="No device has booted from this edge." />}
      />
    </Panel>
  )
}

function EdgeStore({ edge }: { edge: EdgeDetail }) {
  return (
    <>
      <SpacePanel edgeId={edge.id} />
      <CleaningPanel edge={edge} />
    </>
  )
}

/** An edge whose disk has lost the count takes a number from its clock (UPLINK.md). */
const countedEpochsMax = 2 ** 32

function EdgeFacts({ edge }: { edge: EdgeDetail }) {
  return (
    <Facts
      facts={[
        { label: 'Last seen', value: edge.heartbeatAt && <Age at={edge.heartbeatAt} /> },
        {
          label: 'Version',
          value: <Mono>{`${edge.agentVersion} ${edge.arch}`}</Mono>,
        },
        { label: 'Release', value: edge.release && releaseText(edge.release) },
        { label: 'Uptime', value: edge.uptimeMs === null ? null : formatDuration(edge.uptimeMs * 1000) },
        {
          label: 'Clock',
          value: edge.clockOffsetMs === null ? null : `${formatClockOffset(edge.clockOffsetMs)} relative to the API`,
        },
        { label: 'Booting', value: countOf(edge.devicesBooting, 'device') },
        { label: 'Backlog', value: `${countOf(edge.reportBacklog, 'unsent report')}` },
        { label: 'Lost reports', value: edge.reportsLost === 0 ? '0' : countOf(edge.reportsLost, 'report') },
        { label: 'Desired state', value: <DesiredState edge={edge} /> },
        {
          label: 'Agent restarts',
          value: edge.bootEpoch < countedEpochsMax ? formatCount(Math.max(0, edge.bootEpoch - 1)) : 'not counted',
        },
        { label: 'Enrolled', value: <Instant at={edge.enrolledAt} /> },
        { label: 'Key', value: <KeyAge edge={edge} /> },
      ]}
    />
  )
}

function KeyAge({ edge: { keyRotatedAt, keyOrdered } }: { edge: EdgeDetail }) {
  return (
    <>
      {keyRotatedAt ? (
        <>
          rotated <Instant at={keyRotatedAt} />
        </>
      ) : (
        'original'
      )}
      {keyOrdered && '; rotation requested'}
    </>
  )
}

function DesiredState({ edge: { desiredState, appliedState } }: { edge: EdgeDetail }) {
  if (!desiredState) return <>none yet</>
  const name = ({ incarnation, counter }: { incarnation: number; counter: number }) => `${incarnation}.${counter}`
  const applied = appliedState ? name(appliedState) : 'none'
  return name(desiredState) === applied ? (
    <>{applied}, applied</>
  ) : (
    <>
      {name(desiredState)}; the edge has {applied}
    </>
  )
}

function IgnoredPackets({ ignored }: { ignored: EdgeDetail['ignored'] }) {
  return (
    <Panel title="Ignored packets and requests" aside="since the agent started" flush>
      {ignored.length === 0 ? (
        <EmptyState title="None." text="The edge understood everything it received." />
      ) : (
        <Table
          label="Ignored packets by reason"
          rows={ignored}
          rowKey={(row) => row.reason}
          columns={[
            { title: 'Reason', wide: true, cell: (row) => row.reason.replaceAll('_', ' ') },
            { title: 'Count', align: 'right', cell: (row) => formatCount(row.count) },
          ]}
        />
      )}
    </Panel>
  )
}

function EdgeSkeleton() {
  return (
    <LoadingState label="Loading the edge">
      <Page>
        <Skeleton className="h-7 w-56" />
        <div className="grid gap-5 lg:grid-cols-2">
          <Skeleton className="h-72 rounded-lg" />
          <Skeleton className="h-72 rounded-lg" />
        </div>
      </Page>
    </LoadingState>
  )
}

type Gap = EdgeDetail['reportGaps'][number]

/**
 * Reports that the edge could not keep while the control plane was away: these boots took place, and are missing in the
 * lists. Nothing if none was lost.
 */
function LostReports({ edge: { reportsLost, reportGaps } }: { edge: EdgeDetail }) {
  if (reportsLost === 0) return null
  const shown = reportGaps.reduce((sum, { count }) => sum + count, 0)
  return (
    <Panel title="Lost reports" flush>
      <p role="status" className="px-4 py-3 text-silent text-sm">
        This edge lost {countOf(reportsLost, 'report')}. Devices booted, but boots from these times may be missing or
        unfinished in the lists. For a larger log, set <Mono>serve --report-log</Mono>.
        {shown < reportsLost && ` The times of ${countOf(reportsLost - shown, 'report')} are no longer stored.`}
      </p>
      {reportGaps.length > 0 && (
        <Table
          label="Lost reports"
          columns={[
            { title: 'Reports', cell: (gap: Gap) => countOf(gap.count, 'report') },
            { title: 'From', cell: (gap: Gap) => (gap.fromAt ? <Instant at={gap.fromAt} /> : 'unknown') },
            { title: 'To', cell: (gap: Gap) => (gap.untilAt ? <Instant at={gap.untilAt} /> : 'unknown') },
            { title: 'Reason', wide: true, cell: (gap: Gap) => gap.reason },
            { title: 'Detected', from: 'sm', cell: (gap: Gap) => <Instant at={gap.declaredAt} /> },
          ]}
          rows={reportGaps}
          rowKey={(gap: Gap) => `${gap.declaredAt} ${gap.fromAt} ${gap.count} ${gap.reason}`}
        />
      )}
    </Panel>
  )
}

type Interface = EdgeDetail['interfaces'][number]

const interfaceColumns: Column<Interface>[] = [
  { title: 'Name', cell: ({ name }) => <Mono>{name}</Mono> },
  {
    title: 'IP address',
    wide: true,
    cell: ({ ip, prefixLength }) => <Mono>{`${ip}/${prefixLength}`}</Mono>,
  },
  { title: 'MTU', align: 'right', cell: ({ mtu }) => `${mtu} B` },
]

/** Its place in its networks, according to its last heartbeat. */
function EdgeNetwork({ edge: { address, interfaces } }: { edge: EdgeDetail }) {
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
