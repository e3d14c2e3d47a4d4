'use client'

import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useRouter, useSearchParams } from 'next/navigation'
import { ObjectLink, TextLink } from '../../components/button'
import { SelectFilter } from '../../components/filter'
import { Instant } from '../../components/instant'
import { EmptyState, Facts, Page, PageHeader, Panel, Unknown } from '../../components/page'
import { PagedList } from '../../components/paged-list'
import type { Column } from '../../components/table'
import { countOf, formatDuration } from '../../lib/format-quantity'
import { nextPage, useTRPC } from '../../lib/trpc'
import { HistoryPanel } from '../audit/history-panel'
import { ObjectQuery, PageName } from '../shell/object-page'
import { CellsPanel, PhasesPanel } from './cells-panel'
import { ApplyButton, ExperimentActions } from './experiment-actions'
import { type ExperimentDetail, ExperimentTag, Progress, type Trial, TrialTag, trialStates } from './experiment-tags'

/** Boots advance without a change that pages hear of. */
const refreshMs = 3_000

export function ExperimentPage({ experimentId }: { experimentId: string }) {
  const query = useQuery(
    useTRPC().experiment.get.queryOptions(
      { experimentId },
      { refetchInterval: ({ state: { data } }) => (data?.endedAt ? false : refreshMs) },
    ),
  )
  return (
    <ObjectQuery noun="experiment" query={query}>
      {(experiment) => <Experiment experiment={experiment} />}
    </ObjectQuery>
  )
}

function Experiment({ experiment }: { experiment: ExperimentDetail }) {
  return (
    <Page>
      <PageName name={experiment.name} />
      <PageHeader
        title={experiment.name}
        tags={<ExperimentTag state={experiment.state} />}
        summary={
          <>
            Site <TextLink href={`/sites/${experiment.siteId}`}>{experiment.siteName}</TextLink>
          </>
        }
        actions={<ExperimentActions experiment={experiment} />}
      />
      <Recommendation experiment={experiment} />
      <CellsPanel experiment={experiment} />
      <PhasesPanel experiment={experiment} />
      <div className="grid items-start gap-5 lg:grid-cols-[1fr_360px]">
        <Boots experiment={experiment} />
        <Details experiment={experiment} />
      </div>
      <HistoryPanel objectId={experiment.id} />
    </Page>
  )
}

function Recommendation({ experiment }: { experiment: ExperimentDetail }) {
  const { recommendation, applied, cells, reason } = experiment
  return (
    <Panel title="Recommendation">
      <div className="flex flex-wrap items-center justify-between gap-3 text-sm">
        <div className="wrap-anywhere min-w-60 flex-1">
          <p className={recommendation.kind === 'wait' ? 'text-ink-soft' : 'font-medium text-ink'}>
            {recommendation.sentence}
          </p>
          {reason && <p className="mt-1 text-ink-soft">{reason}</p>}
          {applied && (
            <p className="mt-1 text-ink-soft">
              {applied.byName} applied “{cells[applied.cell]?.title}” on <Instant at={applied.at} full />.
            </p>
          )}
        </div>
        {recommendation.cell !== null && <ApplyButton experiment={experiment} cell={recommendation.cell} />}
      </div>
    </Panel>
  )
}

const trialColumns: Column<Trial>[] = [
  {
    title: 'Device',
    cell: ({ bootId, deviceName }) =>
      bootId ? (
        <ObjectLink href={`/boots/${bootId}`}>{deviceName}</ObjectLink>
      ) : (
        <span className="font-medium text-ink">{deviceName}</span>
      ),
  },
  {
    title: 'Settings',
    wide: true,
    from: 'md',
    cell: ({ title }) => <span className="wrap-anywhere whitespace-normal">{title}</span>,
  },
  { title: 'Repetition', align: 'right', from: 'lg', cell: ({ repetition }) => repetition + 1 },
  {
    title: 'Status',
    cell: ({ state, reason }) => (
      <span className="flex flex-col items-start gap-0.5 py-1">
        <TrialTag state={state} />
        {reason && <span className="wrap-anywhere whitespace-normal text-ink-soft text-xs">{reason}</span>}
      </span>
    ),
  },
  {
    title: 'Ready after',
    align: 'right',
    cell: ({ durationUs }) => (durationUs === null ? <Unknown label="not ready" /> : formatDuration(durationUs)),
  },
]

/** The boots behind the numbers; the address says which. */
function Boots({ experiment: { id: experimentId, cells, endedAt } }: { experiment: ExperimentDetail }) {
  const router = useRouter()
  const asked = useSearchParams()
  const cell = cells[Number(asked.get('cell') ?? -1)] ? (asked.get('cell') ?? '') : ''
  const state = trialStates.find(({ value }) => value === asked.get('state'))?.value ?? ''
  const show = (changes: { cell?: string; state?: string }) => {
    const wanted = Object.entries({ cell, state, ...changes }).filter(([, value]) => value !== '')
    router.replace(`/lab/${experimentId}?${new URLSearchParams(wanted)}`, { scroll: false })
  }
  const query = useInfiniteQuery(
    useTRPC().experiment.trials.infiniteQueryOptions(
      {
        experimentId,
        ...(cell === '' ? {} : { cell: Number(cell) }),
        ...(state === '' ? {} : { state: state as Trial['state'] }),
      },
      { ...nextPage, refetchInterval: endedAt ? false : refreshMs },
    ),
  )
  return (
    <div id="boots" className="min-w-0">
      <Panel
        title="Boots"
        flush
        aside={
          <>
            <SelectFilter
              label="Settings"
              value={cell}
              options={cells.map(({ title }, index) => ({ value: String(index), label: title }))}
              onChange={(value) => show({ cell: value })}
            />
            <SelectFilter
              label="Status"
              value={state}
              options={trialStates}
              onChange={(value) => show({ state: value })}
            />
          </>
        }
      >
        <PagedList
          label="Boots of the experiment"
          query={query}
          columns={trialColumns}
          rowKey={({ trialId }) => trialId}
          empty={<EmptyState title="No boots." text="No boot of this experiment has these settings and this status." />}
        />
      </Panel>
    </div>
  )
}

function Details({ experiment }: { experiment: ExperimentDetail }) {
  const { counts, devices, repetitions, atOnce, bootSeconds, createdByName, createdAt, endsAt, endedAt } = experiment
  return (
    <Panel title="Details">
      <Facts
        facts={[
          { label: 'Boots', value: <Progress counts={counts} /> },
          { label: 'Devices', value: devices.map(({ name }) => name).join(', ') },
          { label: 'Repetitions', value: repetitions },
          { label: 'At once', value: countOf(atOnce, 'device') },
          { label: 'Boot limit', value: formatDuration(bootSeconds * 1_000_000) },
          { label: 'Started', value: <Instant at={createdAt} full /> },
          { label: 'Started by', value: createdByName },
          endedAt
            ? { label: 'Ended', value: <Instant at={endedAt} full /> }
            : { label: 'Ends at the latest', value: <Instant at={endsAt} full /> },
        ]}
      />
    </Panel>
  )
}
