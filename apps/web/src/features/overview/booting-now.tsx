'use client'

import { bootPhaseText } from '@bootfarm/proto/boot-phases'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Age } from '../../components/instant'
import { EmptyState, ErrorState, LoadingState, Panel, Skeleton } from '../../components/page'
import { PageLink } from '../../components/page-link'
import { countOf, formatCount } from '../../lib/format-quantity'
import { type Listed, nextPage, readableError, useTRPC } from '../../lib/trpc'
import { BootBar, barScaleUs } from '../boots/boot-bar'
import type { BootSummary } from '../boots/boot-types'
import { BootDuration, OriginTags, OutcomeTag } from '../boots/outcome-tag'
import { EdgeState } from '../edges/edge-columns'
import { heartbeatRefreshMs } from '../edges/heartbeat-refresh'
import { bootingNowInput, edgesInput, sitesInput } from './overview-inputs'
import { hrefIn, type Scope } from './overview-scope'

const asideLink = 'rounded underline-offset-4 hover:underline'

/** Short boots do not fill the line at once. */
const scaleUsMin = 15_000_000

/** The newest boots in progress, of `count`; a boot that ends stays until the list is read again. */
export function BootingNow({ scope, count }: { scope: Scope; count: number }) {
  const trpc = useTRPC()
  const query = useInfiniteQuery(trpc.boot.list.infiniteQueryOptions(bootingNowInput(scope), nextPage))
  const boots = query.data?.pages[0]?.items
  return (
    <Panel
      title="Booting now"
      flush
      className="h-full"
      aside={
        <>
          <PageLink href={hrefIn(scope, '/storm')} className={asideLink}>
            {boots && count > boots.length ? `${boots.length} of ${formatCount(count)} in the storm` : 'Storm'}
          </PageLink>
          <PageLink href={hrefIn(scope, '/boots', { outcome: 'booting' })} className={asideLink}>
            View all
          </PageLink>
        </>
      }
    >
      {boots ? <Boots boots={boots} /> : query.isPending ? <BootsSkeleton /> : null}
      {query.error && !boots && (
        <ErrorState
          title="Could not load running boots."
          text={readableError(query.error)}
          onRetry={() => query.refetch()}
        />
      )}
    </Panel>
  )
}

function Boots({ boots }: { boots: BootSummary[] }) {
  if (boots.length === 0)
    return <EmptyState title="No boots in progress." text="The next boot appears here with its first packet." />
  const scaleUs = Math.max(scaleUsMin, barScaleUs(boots))
  return (
    <ul aria-label="Boots in progress">
      {boots.map((boot) => (
        <li key={boot.id} className="animate-[arrive_1.2s_ease-out] border-line border-t first:border-t-0">
          <PageLink href={`/boots/${boot.id}`} className="block px-4 py-2.5 -outline-offset-2 hover:bg-hover">
            <span className="flex items-center gap-2.5">
              <span className="truncate font-medium text-ink">{boot.deviceName ?? boot.mac}</span>
              <OriginTags {...boot} />
              <span className="ml-auto flex shrink-0 items-center gap-3 text-ink-soft text-xs">
                {boot.outcome ? <OutcomeTag outcome={boot.outcome} /> : phaseTitle(boot)}
                <span className="w-14 text-right">
                  <BootDuration boot={boot} />
                </span>
              </span>
            </span>
            <span className="mt-2 block">
              <BootBar boot={boot} scaleUs={scaleUs} />
            </span>
          </PageLink>
        </li>
      ))}
    </ul>
  )
}

/** A device in its firmware phase has not sent a packet yet. */
function phaseTitle({ lastPhase }: BootSummary): string | null {
  if (lastPhase === 'firmware') return 'Waking'
  return lastPhase && bootPhaseText(lastPhase).title
}

function BootsSkeleton() {
  return (
    <LoadingState label="Loading running boots">
      <div className="flex flex-col gap-4 p-4">
        <Skeleton className="h-8" />
        <Skeleton className="h-8" />
        <Skeleton className="h-8" />
      </div>
    </LoadingState>
  )
}

type SiteSummary = Listed<'site'>
type EdgeSummary = Listed<'edge'>

export function SitesAndEdges({ scope }: { scope: Scope }) {
  const trpc = useTRPC()
  const often = { refetchInterval: heartbeatRefreshMs }
  const sites = useQuery(trpc.site.list.queryOptions(sitesInput(scope), often))
  const edges = useQuery(trpc.edge.list.queryOptions(edgesInput(scope), often))
  const failed = sites.error ?? edges.error
  return (
    <Panel title="Sites and edges" flush className="h-full">
      {sites.data && edges.data ? (
        <SiteList sites={sites.data.items} edges={edges.data.items} />
      ) : failed ? (
        <ErrorState
          title="Could not load sites and edges."
          text={readableError(failed)}
          onRetry={() => Promise.all([sites.refetch(), edges.refetch()])}
        />
      ) : (
        <LoadingState label="Loading sites and edges">
          <div className="flex flex-col gap-3 p-4">
            <Skeleton className="h-5 w-32" />
            <Skeleton className="h-8" />
          </div>
        </LoadingState>
      )}
    </Panel>
  )
}

function SiteList({ sites, edges }: { sites: SiteSummary[]; edges: EdgeSummary[] }) {
  if (sites.length === 0) return <EmptyState title="No sites yet." text="A site holds edges and devices." />
  return (
    <ul>
      {sites.map((site) => (
        <li key={site.id} className="border-line border-t px-4 py-3 first:border-t-0">
          <div className="flex items-baseline justify-between gap-3">
            <PageLink
              href={`/sites/${site.id}`}
              className="wrap-anywhere min-w-0 rounded font-medium underline-offset-4 hover:underline"
            >
              {site.name}
            </PageLink>
            <span className="shrink-0 text-ink-faint text-xs">{countOf(site.deviceCount, 'device')}</span>
          </div>
          <ul className="mt-2 flex flex-col gap-2">
            {edges
              .filter((edge) => edge.siteId === site.id)
              .map((edge) => (
                <EdgeLine key={edge.id} edge={edge} />
              ))}
          </ul>
        </li>
      ))}
    </ul>
  )
}

function EdgeLine({ edge }: { edge: EdgeSummary }) {
  return (
    <li className="flex items-center gap-3 rounded-md bg-sunken px-3 py-2">
      <div className="min-w-0 flex-1">
        <PageLink href={`/edges/${edge.id}`} className="wrap-anywhere rounded underline-offset-4 hover:underline">
          {edge.name}
        </PageLink>
        <p className="truncate text-ink-faint text-xs">
          {edge.agentVersion} on {edge.arch}
          {edge.heartbeatAt && (
            <>
              , last seen <Age at={edge.heartbeatAt} />
            </>
          )}
        </p>
      </div>
      <EdgeState edge={edge} />
    </li>
  )
}
