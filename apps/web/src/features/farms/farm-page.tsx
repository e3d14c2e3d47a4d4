'use client'

import { useQuery } from '@tanstack/react-query'
import { TextLink } from '../../components/button'
import { Instant } from '../../components/instant'
import { Facts, Page, PageHeader, Panel } from '../../components/page'
import { formatCount } from '../../lib/format-quantity'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { HistoryPanel } from '../audit/history-panel'
import { heartbeatRefreshMs } from '../edges/heartbeat-refresh'
import { BootingNow, SitesAndEdges } from '../overview/booting-now'
import { hrefIn } from '../overview/overview-scope'
import { DemoHistoryTag, PlaceBoots, PlaceHead } from '../overview/place-figures'
import { ObjectQuery, PageName } from '../shell/object-page'
import { FarmActions } from './farm-actions'

type FarmOverview = RouterOutputs['farm']['overview']

/** What a farm has, and how its devices boot. */
export function FarmPage({ farmId }: { farmId: string }) {
  const trpc = useTRPC()
  const query = useQuery(trpc.farm.overview.queryOptions({ farmId }, { refetchInterval: heartbeatRefreshMs }))
  return (
    <ObjectQuery noun="farm" query={query}>
      {(overview) => <Farm overview={overview} />}
    </ObjectQuery>
  )
}

function Farm({ overview }: { overview: FarmOverview }) {
  const { farm, last24Hours } = overview
  const scope = { farmId: farm.id }
  return (
    <Page>
      <PageName name={farm.name} />
      <PageHeader
        title={farm.name}
        tags={last24Hours.generatedCount > 0 && <DemoHistoryTag />}
        summary="Farm: sites, vDisks and boot menus belong to it."
        actions={<FarmActions farm={farm} leaveTo="/farms" />}
      />
      <PlaceHead place={overview} scope={scope} />
      <div className="grid items-start gap-5 xl:grid-cols-[1fr_360px]">
        <BootingNow scope={scope} count={overview.counts.bootsBooting} />
        <div className="flex min-w-0 flex-col gap-5">
          <Contents overview={overview} />
          <SitesAndEdges scope={scope} />
        </div>
      </div>
      <PlaceBoots place={overview} scope={scope} />
      <HistoryPanel objectId={farm.id} />
    </Page>
  )
}

/** Each count leads to the list that it counts. */
function Contents({ overview: { farm, counts } }: { overview: FarmOverview }) {
  const counted = (count: number, path: string) => (
    <TextLink href={hrefIn({ farmId: farm.id }, path)}>{formatCount(count)}</TextLink>
  )
  return (
    <Panel title="Contents">
      <Facts
        facts={[
          { label: 'Sites', value: counted(counts.sites, '/sites') },
          { label: 'Edges', value: `${formatCount(counts.edges)}, ${formatCount(counts.edgesOnline)} online` },
          { label: 'Collections', value: formatCount(counts.collections) },
          { label: 'Devices', value: counted(counts.devices, '/devices') },
          { label: 'vDisks', value: counted(counts.vdisks, '/vdisks') },
          { label: 'Created', value: <Instant at={farm.createdAt} /> },
        ]}
      />
    </Panel>
  )
}
