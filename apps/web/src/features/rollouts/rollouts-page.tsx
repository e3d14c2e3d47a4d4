'use client'

import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { LinkButton, ObjectLink, TextLink } from '../../components/button'
import { Instant } from '../../components/instant'
import { EmptyState, Page, PageHeader, Panel } from '../../components/page'
import { PagedList } from '../../components/paged-list'
import { type Column, Table, TableSkeleton } from '../../components/table'
import { Mono } from '../../components/tag'
import { nextPage, type RouterOutputs, useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'
import { PageName, QueryError } from '../shell/object-page'
import { CountsBar, RolloutTag } from './rollout-tags'
import { countsText, type RolloutSummary, waveName } from './rollout-text'

const refreshMs = 5_000

const columns: Column<RolloutSummary>[] = [
  {
    title: 'Release',
    cell: (rollout) => <ObjectLink href={`/edges/rollouts/${rollout.id}`}>{rollout.version}</ObjectLink>,
  },
  { title: 'Status', cell: (rollout) => <RolloutTag rollout={rollout} /> },
  {
    title: 'Farm',
    from: 'md',
    cell: ({ farmId, farmName }) => (
      <TextLink quiet href={`/farms/${farmId}`}>
        {farmName}
      </TextLink>
    ),
  },
  {
    title: 'Wave',
    from: 'sm',
    cell: ({ wave, waveCount }) => `${waveName(wave)}, ${wave + 1} of ${waveCount}`,
  },
  {
    title: 'Edges',
    wide: true,
    from: 'md',
    cell: ({ counts }) => (
      <span className="flex flex-col gap-1">
        <CountsBar counts={counts} />
        <span className="text-ink-soft text-xs">{countsText(counts)}</span>
      </span>
    ),
  },
  { title: 'Started', align: 'right', cell: ({ createdAt }) => <Instant at={createdAt} /> },
]

/** The releases that edges can be updated to, and how they reach the edges. */
export function RolloutsPage() {
  const mayStart = useMay('rollout.change')
  const query = useInfiniteQuery(
    useTRPC().rollout.list.infiniteQueryOptions({}, { ...nextPage, refetchInterval: refreshMs }),
  )
  return (
    <Page>
      <PageName name="Releases" />
      <PageHeader
        title="Releases"
        summary="Edges update themselves while devices keep running. A rollout starts with one site, the canary."
        actions={
          mayStart && (
            <LinkButton href="/edges/rollouts/new" look="primary">
              New rollout
            </LinkButton>
          )
        }
      />
      <Panel title="Rollouts" flush>
        <PagedList
          label="Rollouts"
          query={query}
          columns={columns}
          rowKey={({ id }) => id}
          empty={
            <EmptyState
              title="No rollouts yet."
              text="A rollout updates the canary site first, and then the other sites in waves. It pauses by itself when an edge fails."
            />
          }
        />
      </Panel>
      <Releases />
    </Page>
  )
}

type Release = RouterOutputs['edge']['releases']['releases'][number]

const releaseColumns: Column<Release>[] = [
  { title: 'Version', cell: ({ version }) => <Mono>{version}</Mono> },
  { title: 'Processors', wide: true, cell: ({ archs }) => archs.join(', ') },
]

function Releases() {
  const query = useQuery(useTRPC().edge.releases.queryOptions())
  return (
    <Panel title="Available releases" flush>
      {query.isPending && <TableSkeleton label="Available releases" />}
      {query.isError && <QueryError noun="list of releases" error={query.error} onRetry={() => query.refetch()} />}
      {query.data?.releases.length === 0 && (
        <EmptyState
          title="No releases."
          text="This control plane has no repository of releases, or an empty one. Add releases with scripts/release/repository.mjs."
        />
      )}
      {query.data && query.data.releases.length > 0 && (
        <Table
          label="Available releases"
          columns={releaseColumns}
          rows={query.data.releases}
          rowKey={({ version }) => version}
        />
      )}
    </Panel>
  )
}
