'use client'

import { useInfiniteQuery } from '@tanstack/react-query'
import { LinkButton, ObjectLink, TextLink } from '../../components/button'
import { Instant } from '../../components/instant'
import { EmptyState, Page, PageHeader, Panel } from '../../components/page'
import { PagedList } from '../../components/paged-list'
import type { Column } from '../../components/table'
import { formatCount } from '../../lib/format-quantity'
import { nextPage, useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'
import { type ExperimentSummary, ExperimentTag, Progress } from './experiment-tags'
import { settingChoices } from './lab-draft'

const refreshMs = 5_000

const columns: Column<ExperimentSummary>[] = [
  { title: 'Experiment', cell: ({ id, name }) => <ObjectLink href={`/lab/${id}`}>{name}</ObjectLink> },
  { title: 'Status', cell: ({ state }) => <ExperimentTag state={state} /> },
  {
    title: 'Site',
    from: 'md',
    cell: ({ siteId, siteName }) => (
      <TextLink quiet href={`/sites/${siteId}`}>
        {siteName}
      </TextLink>
    ),
  },
  {
    title: 'Compares',
    from: 'lg',
    cell: ({ factors }) => factors.map(({ setting }) => titleOf(setting)).join(', '),
  },
  { title: 'Cells', align: 'right', from: 'sm', cell: ({ cellCount }) => formatCount(cellCount) },
  { title: 'Devices', align: 'right', from: 'sm', cell: ({ deviceCount }) => formatCount(deviceCount) },
  { title: 'Boots', wide: true, cell: ({ counts }) => <Progress counts={counts} /> },
  { title: 'Started', align: 'right', from: 'sm', cell: ({ createdAt }) => <Instant at={createdAt} /> },
]

function titleOf(setting: string): string {
  return settingChoices.find((choice) => choice.setting === setting)?.title ?? setting
}

/** Experiments: which settings make boots quicker. */
export function LabPage() {
  const mayStart = useMay('experiment.change')
  const query = useInfiniteQuery(
    useTRPC().experiment.list.infiniteQueryOptions({}, { ...nextPage, refetchInterval: refreshMs }),
  )
  return (
    <Page>
      <PageHeader
        title="Tuning lab"
        summary="Boot a few devices with different settings, in random order, and see which settings make boots quicker."
        actions={
          mayStart && (
            <LinkButton href="/lab/new" look="primary">
              New experiment
            </LinkButton>
          )
        }
      />
      <Panel title="Experiments" flush>
        <PagedList
          label="Experiments"
          query={query}
          columns={columns}
          rowKey={({ id }) => id}
          empty={
            <EmptyState
              title="No experiments yet."
              text="An experiment restarts its devices for each boot. Choose devices that nobody works at."
            />
          }
        />
      </Panel>
    </Page>
  )
}
