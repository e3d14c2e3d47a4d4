'use client'

import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import Link from 'next/link'
import { useState } from 'react'
import { Banner } from '../../components/banner'
import { ObjectLink, TextLink } from '../../components/button'
import { SelectFilter } from '../../components/filter'
import { Instant } from '../../components/instant'
import { EmptyState, type Fact, Facts, Page, PageHeader, Panel, Unknown } from '../../components/page'
import { PagedList } from '../../components/paged-list'
import { type Column, Table } from '../../components/table'
import { Mono } from '../../components/tag'
import { countOf } from '../../lib/format-quantity'
import { nextPage, useTRPC } from '../../lib/trpc'
import { HistoryPanel } from '../audit/history-panel'
import { useMay } from '../session/use-may'
import { ObjectQuery, PageName } from '../shell/object-page'
import { RolloutActions } from './rollout-actions'
import { CountsBar, RolloutEdgeTag, RolloutTag } from './rollout-tags'
import {
  countsText,
  edgeStateText,
  edgeWhyText,
  pauseTexts,
  type RolloutDetail,
  type RolloutEdge,
  waveName,
} from './rollout-text'

/** Edges advance without a change that pages hear of. */
const refreshMs = 3_000

export function RolloutPage({ rolloutId }: { rolloutId: string }) {
  const query = useQuery(useTRPC().rollout.get.queryOptions({ rolloutId }, { refetchInterval: refreshMs }))
  return (
    <ObjectQuery noun="rollout" query={query}>
      {(rollout) => <Rollout rollout={rollout} />}
    </ObjectQuery>
  )
}

function Rollout({ rollout }: { rollout: RolloutDetail }) {
  const mayChange = useMay('rollout.change', { farmId: rollout.farmId })
  return (
    <Page>
      <PageName name={`Rollout of ${rollout.version}`} />
      <PageHeader
        title={`Rollout of ${rollout.version}`}
        tags={<RolloutTag rollout={rollout} />}
        summary={
          <>
            Farm <TextLink href={`/farms/${rollout.farmId}`}>{rollout.farmName}</TextLink>; {countsText(rollout.counts)}
          </>
        }
        actions={mayChange && <RolloutActions rollout={rollout} />}
      />
      {rollout.pause && <PauseNotice pause={rollout.pause} />}
      <div className="grid items-start gap-5 lg:grid-cols-[1fr_360px]">
        <Waves rollout={rollout} />
        <Panel title="Details">
          <Facts
            facts={[
              ...nextStep(rollout),
              {
                label: 'Healthy for',
                value: rollout.healthyMinutes === 0 ? 'no minimum time' : countOf(rollout.healthyMinutes, 'minute'),
              },
              { label: 'Started', value: <Instant at={rollout.createdAt} full /> },
              { label: 'Started by', value: rollout.createdByName },
              ...(rollout.endedAt ? [{ label: 'Ended', value: <Instant at={rollout.endedAt} full /> }] : []),
            ]}
          />
        </Panel>
      </div>
      <Edges rolloutId={rollout.id} />
      <HistoryPanel objectId={rollout.id} />
    </Page>
  )
}

/** Why it stands still, and what to do. */
function PauseNotice({ pause: { reason, at, edge } }: { pause: NonNullable<RolloutDetail['pause']> }) {
  return (
    <Banner label="Paused rollout" tone={reason === 'by_hand' ? 'silent' : 'failed'}>
      {reason === 'by_hand' ? (
        <p className="font-medium">Someone paused this rollout.</p>
      ) : (
        <>
          <p className="font-medium">
            This rollout paused by itself:{' '}
            {edge ? (
              <Link href={`/edges/${edge.id}`} className="rounded underline underline-offset-4">
                {edge.name}
              </Link>
            ) : (
              'an edge that no longer exists'
            )}{' '}
            {pauseTexts[reason].what}.
          </p>
          <p className="mt-0.5 text-ink-soft">{pauseTexts[reason].remedy}</p>
        </>
      )}
      <p className="mt-1.5 text-ink-soft text-xs">
        Paused since <Instant at={at} full />. Edges that already have an order continue; no other edge gets one until
        someone resumes the rollout.
      </p>
    </Banner>
  )
}

/** When the next wave starts, or the rollout ends; nothing once it is over. */
function nextStep({ state, byHand, wave, waveCount, mayStartNext, healthyAt }: RolloutDetail): Fact[] {
  if (state === 'done' || state === 'cancelled') return []
  const label = wave + 1 === waveCount ? 'Rollout ends' : 'Next wave starts'
  if (state === 'paused') return [{ label, value: 'after the rollout is resumed' }]
  if (healthyAt === null) return [{ label, value: 'when every edge of this wave runs the release' }]
  if (byHand && mayStartNext) return [{ label, value: 'when someone clicks “Start next wave”' }]
  return [{ label, value: <Instant at={healthyAt} full /> }]
}

type Wave = RolloutDetail['waves'][number] & { wave: number; word: string }

const waveColumns: Column<Wave>[] = [
  {
    title: 'Wave',
    cell: ({ wave, word }) => (
      <span className="flex flex-col">
        <span className="font-medium text-ink">{waveName(wave)}</span>
        <span className="text-ink-soft text-xs">{word}</span>
      </span>
    ),
  },
  {
    title: 'Sites',
    wide: true,
    cell: ({ sites }) =>
      sites.length === 0 ? (
        <Unknown label="none left" />
      ) : (
        <span className="wrap-anywhere whitespace-normal">{sitesText(sites)}</span>
      ),
  },
  {
    title: 'Edges',
    align: 'right',
    from: 'sm',
    cell: ({ counts }) => (
      <span className="flex min-w-40 flex-col gap-1 py-1">
        <CountsBar counts={counts} />
        <span className="text-ink-soft text-xs">{countsText(counts)}</span>
      </span>
    ),
  },
]

const sitesShown = 5

function sitesText(sites: Wave['sites']): string {
  const names = sites.slice(0, sitesShown).map(({ name }) => name)
  return sites.length > sitesShown ? `${names.join(', ')} and ${sites.length - sitesShown} more` : names.join(', ')
}

function Waves({ rollout }: { rollout: RolloutDetail }) {
  const rows = rollout.waves.map((wave, index) => ({ ...wave, wave: index, word: waveWord(rollout, index) }))
  return (
    <Panel title="Waves" flush>
      <Table label="Waves" columns={waveColumns} rows={rows} rowKey={({ wave }) => String(wave)} />
    </Panel>
  )
}

function waveWord({ state, wave: current }: RolloutDetail, wave: number): string {
  if (wave < current || state === 'done') return 'done'
  if (state === 'cancelled') return 'cancelled'
  if (wave > current) return 'waiting'
  return state === 'paused' ? 'paused' : 'in progress'
}

const edgeColumns: Column<RolloutEdge>[] = [
  {
    title: 'Edge',
    cell: (edge) => <ObjectLink href={`/edges/${edge.edgeId}`}>{edge.name}</ObjectLink>,
  },
  {
    title: 'Status',
    cell: (edge) => (
      <>
        <RolloutEdgeTag state={edge.state} />
        <span className="wrap-anywhere block whitespace-normal text-ink-soft text-xs md:hidden">
          {edgeWhyText(edge)}
        </span>
      </>
    ),
  },
  {
    title: 'Reason',
    wide: true,
    from: 'md',
    cell: (edge) => <span className="wrap-anywhere whitespace-normal text-ink-soft text-xs">{edgeWhyText(edge)}</span>,
  },
  { title: 'Wave', from: 'lg', cell: ({ wave }) => waveName(wave) },
  {
    title: 'Site',
    from: 'sm',
    cell: ({ siteId, siteName }) => (
      <Link
        prefetch={false}
        href={`/sites/${siteId}`}
        className="rounded text-ink-soft underline-offset-4 hover:underline"
      >
        {siteName}
      </Link>
    ),
  },
  {
    title: 'Runs',
    from: 'sm',
    cell: ({ formerVersion, agentVersion }) => (
      <Mono>
        {formerVersion === null || formerVersion === agentVersion ? agentVersion : `${formerVersion} → ${agentVersion}`}
      </Mono>
    ),
  },
  {
    title: 'Ordered',
    align: 'right',
    from: 'lg',
    cell: ({ orderedAt }) => (orderedAt ? <Instant at={orderedAt} /> : <Unknown label="not yet" />),
  },
]

const states = Object.entries(edgeStateText).map(([value, label]) => ({ value, label }))

function Edges({ rolloutId }: { rolloutId: string }) {
  const [state, setState] = useState<RolloutEdge['state'] | ''>('')
  const query = useInfiniteQuery(
    useTRPC().rollout.edges.infiniteQueryOptions(
      { rolloutId, ...(state ? { state } : {}) },
      { ...nextPage, refetchInterval: refreshMs },
    ),
  )
  return (
    <Panel
      title="Edges"
      flush
      aside={
        <SelectFilter
          label="Status"
          value={state}
          options={states}
          onChange={(value) => setState(value as RolloutEdge['state'] | '')}
        />
      }
    >
      <PagedList
        label="Edges in this rollout"
        query={query}
        columns={edgeColumns}
        rowKey={({ edgeId }) => edgeId}
        empty={<EmptyState title="No edges." text="No edge of this rollout has this status." />}
      />
    </Panel>
  )
}
