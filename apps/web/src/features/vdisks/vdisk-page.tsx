'use client'

import { useQuery } from '@tanstack/react-query'
import Link from 'next/link'
import { Page, PageHeader } from '../../components/page-header'
import { Panel } from '../../components/panel'
import { EmptyState, LoadingState, Skeleton } from '../../components/states'
import { type Column, Table } from '../../components/table'
import { countOf, formatCount } from '../../lib/format-quantity'
import { useTRPC } from '../../lib/trpc'
import { heartbeatRefreshMs } from '../edges/heartbeat-refresh'
import { PageName } from '../shell/breadcrumbs'
import { QueryError } from '../shell/query-error'
import { JobsPanel } from '../store-jobs/jobs-panel'
import { VdiskActions } from './vdisk-actions'
import { VdiskMenus } from './vdisk-menus'
import { VersionChain } from './version-chain'
import type { VdiskDetail } from './version-types'
import { WriteCachePanel } from './write-cache-panel'

type Collection = VdiskDetail['collections'][number]

const collectionColumns: Column<Collection>[] = [
  {
    title: 'Collection',
    cell: (collection) => (
      <Link
        prefetch={false}
        href={`/devices?collection=${collection.id}`}
        className="rounded font-medium text-ink underline-offset-4 hover:underline"
      >
        {collection.name}
      </Link>
    ),
  },
  { title: 'Site', wide: true, cell: (collection) => collection.siteName },
  { title: 'Devices', align: 'right', cell: (collection) => formatCount(collection.deviceCount) },
]

export function VdiskPage({ vdiskId }: { vdiskId: string }) {
  const trpc = useTRPC()
  const query = useQuery(trpc.vdisk.get.queryOptions({ vdiskId }, { refetchInterval: heartbeatRefreshMs }))
  if (query.data) return <Vdisk vdisk={query.data} />
  if (query.isPending) {
    return (
      <LoadingState label="Loading vDisk">
        <Page>
          <Skeleton className="h-7 w-56" />
          <Skeleton className="h-64 w-full rounded-lg" />
        </Page>
      </LoadingState>
    )
  }
  return <QueryError noun="vDisk" error={query.error} onRetry={() => query.refetch()} />
}

function Vdisk({ vdisk }: { vdisk: VdiskDetail }) {
  return (
    <Page>
      <PageName name={vdisk.name} />
      <PageHeader
        title={vdisk.name}
        summary={[
          `${countOf(vdisk.versions.length, 'version')}, farm ${vdisk.farmName}`,
          ...(vdisk.store ? [`store ${vdisk.store.name}`] : []),
          ...(vdisk.note ? [vdisk.note] : []),
        ].join(', ')}
        actions={<VdiskActions vdisk={vdisk} />}
      />
      <Panel title="Versions" aside="Version history" flush>
        {vdisk.versions.length === 0 ? (
          <EmptyState title="No versions yet." text="Devices cannot boot this vDisk until it has a version." />
        ) : (
          <VersionChain vdisk={vdisk} />
        )}
      </Panel>
      <Panel title="Used by" flush>
        {vdisk.collections.length === 0 ? (
          <EmptyState title="Not used by any collection." text="A collection selects the vDisk its devices boot." />
        ) : (
          <Table
            label="Collections"
            columns={collectionColumns}
            rows={vdisk.collections}
            rowKey={(collection) => collection.id}
          />
        )}
      </Panel>
      <JobsPanel of={{ vdiskId: vdisk.id }} />
      <WriteCachePanel vdisk={vdisk} />
      <VdiskMenus menus={vdisk.menus} />
    </Page>
  )
}
