'use client'

import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { TextLink } from '../../components/button'
import { Instant } from '../../components/instant'
import { EmptyState, ErrorState, Facts, LoadingState, Page, PageHeader, Panel, Skeleton } from '../../components/page'
import { PageLink } from '../../components/page-link'
import { PagedList } from '../../components/paged-list'
import { formatCount } from '../../lib/format-quantity'
import { nextPage, type RouterOutputs, readableError, useTRPC } from '../../lib/trpc'
import { OpenAlerts } from '../alerts/open-alerts'
import { HistoryPanel } from '../audit/history-panel'
import { BootList } from '../boots/boot-list'
import { deviceColumnsOfCollection } from '../devices/device-columns'
import { learnOptions, withoutOptions } from '../devices/key-text'
import { heartbeatRefreshMs } from '../edges/heartbeat-refresh'
import { BootSettings } from '../lab/boot-settings-fact'
import { CollectionObjective } from '../objectives/objective-panel'
import { collectionFiguresOf } from '../overview/overview-figures'
import { Figures } from '../overview/place-figures'
import { useMay } from '../session/use-may'
import { ObjectQuery, PageName } from '../shell/object-page'
import { CollectionActions } from './collection-actions'

type CollectionDetail = RouterOutputs['collection']['get']

const devicesShown = 10
const bootsShown = 10

/** What the devices of a collection boot, and how they do. */
export function CollectionPage({ collectionId }: { collectionId: string }) {
  const trpc = useTRPC()
  const query = useQuery(trpc.collection.get.queryOptions({ collectionId }))
  return (
    <ObjectQuery noun="collection" query={query}>
      {(collection) => <Collection collection={collection} />}
    </ObjectQuery>
  )
}

function Collection({ collection }: { collection: CollectionDetail }) {
  const { id: collectionId, siteId, farmId } = collection
  const mayChange = useMay('collection.change', { collectionId, siteId, farmId })
  return (
    <Page>
      <PageName name={collection.name} />
      <PageHeader
        title={collection.name}
        summary={
          <>
            Collection of site <TextLink href={`/sites/${collection.siteId}`}>{collection.siteName}</TextLink>
          </>
        }
        actions={<CollectionActions collection={collection} leaveTo={`/sites/${collection.siteId}`} />}
      />
      <CollectionFigures collectionId={collection.id} />
      <OpenAlerts scope={{ collectionId: collection.id }} />
      <div className="grid items-start gap-5 xl:grid-cols-[1fr_340px]">
        <Devices collectionId={collection.id} />
        <div className="grid gap-5 sm:max-xl:grid-cols-2">
          <CollectionFacts collection={collection} mayChange={mayChange} />
          <CollectionObjective collection={collection} mayChange={mayChange} />
        </div>
      </div>
      <Panel
        title="Latest boots"
        flush
        aside={
          <PageLink href={`/boots?collection=${collection.id}`} className="rounded underline-offset-4 hover:underline">
            All boots
          </PageLink>
        }
      >
        <BootList
          input={{ collectionId: collection.id, limit: bootsShown }}
          empty={<EmptyState title="No boots yet." text="No device of this collection has booted." />}
        />
      </Panel>
      <HistoryPanel objectId={collection.id} />
    </Page>
  )
}

function CollectionFigures({ collectionId }: { collectionId: string }) {
  const trpc = useTRPC()
  const { data, error, refetch } = useQuery(
    trpc.overview.ofCollection.queryOptions({ collectionId }, { refetchInterval: heartbeatRefreshMs }),
  )
  if (data) return <Figures figures={collectionFiguresOf(data, collectionId)} />
  if (error)
    return <ErrorState title="Could not load the figures." text={readableError(error)} onRetry={() => refetch()} />
  return (
    <LoadingState label="Loading figures">
      <Skeleton className="h-16 w-full rounded-lg" />
    </LoadingState>
  )
}

function Devices({ collectionId }: { collectionId: string }) {
  const trpc = useTRPC()
  const query = useInfiniteQuery(
    trpc.device.list.infiniteQueryOptions(
      { collectionId, limit: devicesShown },
      { ...nextPage, placeholderData: keepPreviousData },
    ),
  )
  return (
    <Panel
      title="Devices"
      flush
      aside={
        <PageLink href={`/devices?collection=${collectionId}`} className="rounded underline-offset-4 hover:underline">
          All devices
        </PageLink>
      }
    >
      <PagedList
        label="Devices of this collection"
        query={query}
        columns={deviceColumnsOfCollection}
        rowKey={({ id }) => id}
        empty={<EmptyState title="No devices yet." text="Move devices here, or adopt discovered machines." />}
      />
    </Panel>
  )
}

const labelOf = (options: { value: string; label: string }[], value: string) =>
  options.find((option) => option.value === value)?.label ?? value

function CollectionFacts({ collection, mayChange }: { collection: CollectionDetail; mayChange: boolean }) {
  const { vdiskId, vdiskName, bootMenu, templateDevice } = collection
  return (
    <Panel title="Details">
      <Facts
        facts={[
          { label: 'vDisk', value: vdiskId ? <TextLink href={`/vdisks/${vdiskId}`}>{vdiskName}</TextLink> : 'none' },
          {
            label: 'Boot menu',
            value: bootMenu ? <TextLink href={`/boot-menus/${bootMenu.id}`}>{bootMenu.name}</TextLink> : 'none',
          },
          { label: 'Boot programs', value: collection.bootProgramSet ?? 'Site default' },
          {
            label: 'Template',
            value: templateDevice ? (
              <TextLink href={`/devices/${templateDevice.id}`}>{templateDevice.name}</TextLink>
            ) : (
              'none'
            ),
          },
          { label: 'Keys', value: labelOf(learnOptions, collection.keyLearn) },
          { label: 'Without key', value: labelOf(withoutOptions, collection.keyWithout) },
          { label: 'Boot settings', value: <BootSettings collection={collection} mayChange={mayChange} /> },
          { label: 'Devices', value: formatCount(collection.deviceCount) },
          { label: 'Created', value: <Instant at={collection.createdAt} /> },
        ]}
      />
    </Panel>
  )
}
