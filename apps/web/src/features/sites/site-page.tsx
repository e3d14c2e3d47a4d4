'use client'

import { useQuery } from '@tanstack/react-query'
import Link from 'next/link'
import { Page, PageHeader } from '../../components/page-header'
import { Facts, Panel, Unknown } from '../../components/panel'
import { EmptyState, LoadingState, Skeleton } from '../../components/states'
import { type Column, Table } from '../../components/table'
import { formatCount } from '../../lib/format-quantity'
import { formatInstantInFull } from '../../lib/format-time'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { useNow } from '../../lib/use-now'
import { HistoryPanel } from '../audit/history-panel'
import { CollectionMenu } from '../boot-menus/collection-menu'
import { CollectionActions, NewCollection } from '../collections/collection-actions'
import { AddEdge } from '../edges/add-edge'
import { heartbeatRefreshMs } from '../edges/heartbeat-refresh'
import { PageName } from '../shell/breadcrumbs'
import { QueryError } from '../shell/query-error'
import { CollectionBootPrograms } from './collection-boot-programs'
import { EdgesOnline } from './edges-online'
import { SiteActions } from './site-actions'
import { siteEdgeColumns } from './site-edge-columns'
import { SiteSettings } from './site-settings'

type SiteDetail = RouterOutputs['site']['get']
type Collection = SiteDetail['collections'][number]

const collectionColumns: Column<Collection>[] = [
  {
    title: 'Name',
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
  {
    title: 'vDisk',
    wide: true,
    cell: ({ vdiskId, vdiskName }) =>
      vdiskId ? (
        <Link
          prefetch={false}
          href={`/vdisks/${vdiskId}`}
          className="rounded text-ink-soft underline-offset-4 hover:underline"
        >
          {vdiskName}
        </Link>
      ) : (
        <Unknown label="none" />
      ),
  },
  {
    title: 'Boot menu',
    from: 'sm',
    cell: (collection) => <CollectionMenu collection={collection} />,
  },
  {
    title: 'Boot programs',
    from: 'sm',
    cell: (collection) => <CollectionBootPrograms collection={collection} />,
  },
  { title: 'Devices', align: 'right', cell: (collection) => formatCount(collection.deviceCount) },
  {
    title: 'Actions',
    align: 'right',
    cell: (collection) => <CollectionActions collection={collection} />,
  },
]

export function SitePage({ siteId }: { siteId: string }) {
  const trpc = useTRPC()
  const query = useQuery(trpc.site.get.queryOptions({ siteId }, { refetchInterval: heartbeatRefreshMs }))
  if (query.data) return <Site site={query.data} />
  if (query.isPending) {
    return (
      <LoadingState label="Loading site">
        <Page>
          <Skeleton className="h-7 w-56" />
          <Skeleton className="h-80 w-full rounded-lg" />
        </Page>
      </LoadingState>
    )
  }
  return <QueryError noun="site" error={query.error} onRetry={() => query.refetch()} />
}

function Site({ site }: { site: SiteDetail }) {
  return (
    <Page>
      <PageName name={site.name} />
      <PageHeader
        title={site.name}
        tags={<EdgesOnline {...site} />}
        summary={`Farm ${site.farmName}`}
        actions={<SiteActions site={site} />}
      />
      <div className="grid items-start gap-5 xl:grid-cols-[1fr_340px]">
        <div className="flex min-w-0 flex-col gap-5">
          <Panel title="Edges" aside={<AddEdge site={site} look="quiet" />} flush>
            {site.edges.length === 0 ? (
              <EmptyState title="No edges yet." text="Devices of this site are not served." />
            ) : (
              <Table
                label="Edges of this site"
                columns={siteEdgeColumns(site.edgeCount)}
                rows={site.edges}
                rowKey={(edge) => edge.id}
              />
            )}
          </Panel>
          <Panel title="Collections" flush aside={<NewCollection site={site} />}>
            {site.collections.length === 0 ? (
              <EmptyState title="No collections yet." text="A collection selects the vDisk its devices boot." />
            ) : (
              <Table
                label="Collections of this site"
                columns={collectionColumns}
                rows={site.collections}
                rowKey={(collection) => collection.id}
              />
            )}
          </Panel>
        </div>
        <div className="grid gap-5 sm:max-xl:grid-cols-2">
          <Panel title="Details">
            <Facts
              facts={[
                { label: 'Time zone', value: site.timeZone.replaceAll('_', ' ') },
                { label: 'Local time', value: formatInstantInFull(useNow(1000), site.timeZone) },
                { label: 'Devices', value: formatCount(site.deviceCount) },
                {
                  label: 'Unknown devices',
                  value:
                    site.unknownDevices === 'boot' ? (
                      'boot default vDisk'
                    ) : (
                      <>
                        hold for approval under{' '}
                        <Link
                          prefetch={false}
                          href={`/discovered?site=${site.id}`}
                          className="rounded underline decoration-line-strong underline-offset-4 hover:decoration-ink"
                        >
                          Discovered
                        </Link>
                      </>
                    ),
                },
              ]}
            />
          </Panel>
          <SiteSettings site={site} />
        </div>
      </div>
      <HistoryPanel objectId={site.id} />
    </Page>
  )
}
