'use client'

import { useQuery } from '@tanstack/react-query'
import Link from 'next/link'
import { Instant } from '../../components/instant'
import { Page, PageHeader } from '../../components/page-header'
import { Panel, Unknown } from '../../components/panel'
import { EmptyState, LoadingState, Skeleton } from '../../components/states'
import { type Column, Table } from '../../components/table'
import { countOf, formatBytes, formatCount } from '../../lib/format-quantity'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { PageName } from '../shell/breadcrumbs'
import { QueryError } from '../shell/query-error'
import { VdiskActions, VersionActions } from './vdisk-actions'
import { VdiskMenus } from './vdisk-menus'

type VdiskDetail = RouterOutputs['vdisk']['get']
type Version = VdiskDetail['versions'][number]
type Collection = VdiskDetail['collections'][number]

const path = (text: string) => <span className="font-mono text-ink-soft text-xs">{text}</span>

const versionColumns: Column<Version>[] = [
  { title: 'Version', cell: (version) => <span className="font-medium">{version.number}</span> },
  { title: 'Size', align: 'right', cell: (version) => formatBytes(version.sizeBytes) },
  { title: 'Disk', cell: (version) => path(version.diskPath) },
  {
    title: 'Kernel',
    from: 'md',
    cell: ({ kernelPath }) =>
      kernelPath ? path(kernelPath) : <Unknown label="boots from its own boot sector" />,
  },
  {
    title: 'Initramfs',
    from: 'lg',
    cell: ({ initrdPath }) => (initrdPath ? path(initrdPath) : <Unknown label="none" />),
  },
  {
    title: 'Command line',
    from: 'xl',
    wide: true,
    cell: ({ commandLine }) => (commandLine === '' ? <Unknown label="empty" /> : path(commandLine)),
  },
  { title: 'Made', align: 'right', from: 'sm', cell: (version) => <Instant at={version.createdAt} /> },
  { title: 'Actions', align: 'right', cell: (version) => <VersionActions version={version} /> },
]

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
  const query = useQuery(trpc.vdisk.get.queryOptions({ vdiskId }))
  if (query.data) return <Vdisk vdisk={query.data} />
  if (query.isPending) {
    return (
      <LoadingState label="Loading the vDisk">
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
          `${countOf(vdisk.versions.length, 'version')}, of farm ${vdisk.farmName}`,
          ...(vdisk.store ? [`in store ${vdisk.store.name}`] : []),
          ...(vdisk.note ? [vdisk.note] : []),
        ].join(', ')}
        actions={<VdiskActions vdisk={vdisk} />}
      />
      <Panel title="Versions" aside="newest first; devices boot the newest" flush>
        {vdisk.versions.length === 0 ? (
          <EmptyState title="No versions yet." text="Without a version its devices cannot boot." />
        ) : (
          <Table
            label="Versions"
            columns={versionColumns}
            rows={vdisk.versions}
            rowKey={(version) => version.id}
          />
        )}
      </Panel>
      <Panel title="Booted by" flush>
        {vdisk.collections.length === 0 ? (
          <EmptyState
            title="No collection boots it."
            text="A collection says which vDisk its devices boot."
          />
        ) : (
          <Table
            label="Collections"
            columns={collectionColumns}
            rows={vdisk.collections}
            rowKey={(collection) => collection.id}
          />
        )}
      </Panel>
      <VdiskMenus menus={vdisk.menus} />
    </Page>
  )
}
