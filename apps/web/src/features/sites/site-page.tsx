'use client'

import { useMutation, useQuery } from '@tanstack/react-query'
import Link from 'next/link'
import { ObjectLink, TextLink } from '../../components/button'
import { SelectField } from '../../components/field'
import { EmptyState, Facts, Page, PageHeader, Panel, Unknown } from '../../components/page'
import { type Column, Table } from '../../components/table'
import { Tag } from '../../components/tag'
import { useFailureToast } from '../../components/toast'
import { formatCount } from '../../lib/format-quantity'
import { formatInstantInFull } from '../../lib/format-time'
import { type RouterInputs, type RouterOutputs, useRefresh, useTRPC } from '../../lib/trpc'
import { useNow } from '../../lib/use-now'
import { OpenAlerts } from '../alerts/open-alerts'
import { HistoryPanel } from '../audit/history-panel'
import { CollectionMenu } from '../boot-menus/collection-menu'
import { BootProgramChoice } from '../boot-programs/boot-program-choice'
import { CollectionActions, NewCollection } from '../collections/collection-actions'
import { AddEdge } from '../edges/add-edge'
import { edgeColumns } from '../edges/edge-columns'
import { heartbeatRefreshMs } from '../edges/heartbeat-refresh'
import { JoinTokens } from '../edges/join-tokens'
import { SiteLoadPanel } from '../load/load-panel'
import { SiteObjective } from '../objectives/objective-panel'
import { PlaceBoots, PlaceHead } from '../overview/place-figures'
import { useMay } from '../session/use-may'
import { ObjectQuery, PageName } from '../shell/object-page'
import { CollectionBootPrograms } from './collection-boot-programs'
import { EdgesOnline } from './edges-online'
import { SiteActions } from './site-actions'

type SiteEdge = RouterOutputs['site']['get']['edges'][number]

const named = (title: string) => edgeColumns.filter((column) => column.title === title)

/** A site's edges beside each other. @param edgeCount how many are not revoked */
function siteEdgeColumns(edgeCount: number): Column<SiteEdge>[] {
  return [
    ...named('Name'),
    ...named('Status'),
    {
      title: 'Share',
      align: 'right',
      meaning: 'Share of the site’s devices with the edges that are online now, not counting preferred networks.',
      cell: (edge) => (
        <span className="inline-flex items-center gap-2">
          {edge.draining && <Tag tone="silent">draining</Tag>}
          {edge.share}&nbsp;%
        </span>
      ),
    },
    {
      title: 'Peers',
      from: 'sm',
      align: 'right',
      meaning: 'Other edges of the site seen within the last 20 s.',
      cell: (edge) => (edgeCount < 2 ? 'alone' : `${edge.peersHeard} of ${edgeCount - 1}`),
    },
    ...named('Booting'),
    ...named('Backlog'),
    ...named('Last seen'),
  ]
}

type SiteDetail = RouterOutputs['site']['get']
type Collection = SiteDetail['collections'][number]

const collectionColumns: Column<Collection>[] = [
  {
    title: 'Name',
    cell: (collection) => <ObjectLink href={`/collections/${collection.id}`}>{collection.name}</ObjectLink>,
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
  { title: 'Boot menu', from: 'sm', cell: (collection) => <CollectionMenu collection={collection} /> },
  {
    title: 'Boot programs',
    from: 'sm',
    cell: (collection) => <CollectionBootPrograms collection={collection} />,
  },
  { title: 'Devices', align: 'right', cell: (collection) => formatCount(collection.deviceCount) },
  { title: 'Actions', align: 'right', cell: (collection) => <CollectionActions collection={collection} /> },
]

export function SitePage({ siteId }: { siteId: string }) {
  const trpc = useTRPC()
  const query = useQuery(trpc.site.get.queryOptions({ siteId }, { refetchInterval: heartbeatRefreshMs }))
  return (
    <ObjectQuery noun="site" query={query}>
      {(site) => <Site site={site} />}
    </ObjectQuery>
  )
}

function Site({ site }: { site: SiteDetail }) {
  const trpc = useTRPC()
  const scope = { siteId: site.id }
  const mayChange = useMay('site.change', { siteId: site.id, farmId: site.farmId })
  const { data: place } = useQuery(trpc.overview.get.queryOptions(scope, { refetchInterval: heartbeatRefreshMs }))
  return (
    <Page>
      <PageName name={site.name} />
      <PageHeader
        title={site.name}
        tags={<EdgesOnline {...site} />}
        summary={
          <>
            Farm <TextLink href={`/farms/${site.farmId}`}>{site.farmName}</TextLink>
          </>
        }
        actions={<SiteActions site={site} />}
      />
      {place && <PlaceHead place={place} scope={scope} />}
      <OpenAlerts scope={scope} />
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
          <JoinTokens site={site} />
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
          <SiteFacts site={site} />
          <SiteSettings site={site} />
          <SiteObjective site={site} mayChange={mayChange} />
        </div>
      </div>
      <SiteLoadPanel siteId={site.id} />
      {place && <PlaceBoots place={place} scope={scope} />}
      <HistoryPanel objectId={site.id} />
    </Page>
  )
}

type Capture = RouterInputs['site']['setCapture']['capture']

const captures: { value: Capture; label: string }[] = [
  { value: 'never', label: 'Off' },
  { value: 'failed', label: 'Failed boots only' },
  { value: 'always', label: 'All boots' },
]

const copySchedules = [
  { value: '0', label: 'Off' },
  ...[1, 4, 12].map((hours) => ({ value: String(hours), label: hours === 1 ? 'Every hour' : `Every ${hours} hours` })),
  { value: '24', label: 'Every day' },
  { value: '168', label: 'Every week' },
]

/** A schedule that the API has set to other hours is shown as it is. */
function copyOptions(hours: number): typeof copySchedules {
  if (copySchedules.some(({ value }) => Number(value) === hours)) return copySchedules
  return [...copySchedules, { value: String(hours), label: `Every ${hours} hours` }]
}

/** Settings for all devices of the site. Each choice applies at once. */
function SiteSettings({ site }: { site: SiteDetail }) {
  const trpc = useTRPC()
  const mayChange = useMay('site.change')
  const options = {
    onSuccess: useRefresh(trpc.site.pathFilter()),
    onError: useFailureToast(`Could not update ${site.name}.`),
  }
  const choose = useMutation(trpc.site.setBootProgramSet.mutationOptions(options))
  const capture = useMutation(trpc.site.setCapture.mutationOptions(options))
  const copies = useMutation(trpc.site.setCacheCopies.mutationOptions(options))
  return (
    <Panel title="Settings">
      <div className="flex flex-col gap-4">
        <BootProgramChoice
          label="Boot programs"
          siteId={site.id}
          value={site.bootProgramSet}
          inherited="Edge default"
          inheritedSet={null}
          mayChange={mayChange}
          onChoose={(bootProgramSet) => choose.mutate({ siteId: site.id, bootProgramSet })}
        />
        <SelectField
          label="Packet capture"
          value={site.capture}
          options={captures}
          disabled={!mayChange}
          onChange={(value) =>
            capture.mutate({
              siteId: site.id,
              capture: captures.find((one) => one.value === value)?.value ?? 'failed',
            })
          }
        />
        <SelectField
          label="Copy write caches to a second edge"
          value={String(site.cacheCopyHours)}
          options={copyOptions(site.cacheCopyHours)}
          disabled={!mayChange}
          onChange={(value) => copies.mutate({ siteId: site.id, cacheCopyHours: Number(value) })}
        />
      </div>
    </Panel>
  )
}

function SiteFacts({ site }: { site: SiteDetail }) {
  return (
    <Panel title="Details">
      <Facts
        facts={[
          { label: 'Time zone', value: site.timeZone.replaceAll('_', ' ') },
          { label: 'Local time', value: formatInstantInFull(useNow(1000), site.timeZone) },
          {
            label: 'Devices',
            value: <TextLink href={`/devices?site=${site.id}`}>{formatCount(site.deviceCount)}</TextLink>,
          },
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
  )
}
