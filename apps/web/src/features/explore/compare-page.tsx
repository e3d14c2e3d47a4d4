'use client'

import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { LinkButton, TextLink } from '../../components/button'
import { EmptyState, ErrorState, LoadingState, Page, PageHeader, Panel, Skeleton } from '../../components/page'
import { useFirstPaint } from '../../lib/first-paint'
import { formatDuration } from '../../lib/format-quantity'
import { readableError, useTRPC } from '../../lib/trpc'
import { useUrlFilters } from '../../lib/use-url-filters'
import { BootFilterBar } from '../boots/boot-filter-bar'
import { PageName } from '../shell/object-page'
import { CompareDistributions } from './compare-distributions'
import { CompareFiles } from './compare-files'
import {
  type BootSets,
  compareHref,
  compareInput,
  compareShape,
  parameterOf,
  parametersOf,
  setsOf,
} from './compare-inputs'
import { ComparePhases } from './compare-phases'
import { type Comparison, summaryOf } from './compare-text'
import { countText, sampleText } from './count-text'
import { bootsHref } from './explore-inputs'
import { SavedViews } from './saved-views'

export function ComparePage() {
  const url = useUrlFilters(compareShape)
  const paint = useFirstPaint()
  const sets = useMemo(() => setsOf(url.filters), [url.filters])
  // biome-ignore lint/correctness/useExhaustiveDependencies: the boots of the first paint stay until a filter changes
  const input = useMemo(() => compareInput(sets, paint ? new Date(paint.now) : new Date()), [sets])
  const query = useQuery(useTRPC().explore.compare.queryOptions(input, { placeholderData: keepPreviousData }))
  const { data } = query
  return (
    <Page>
      <PageName name="Compare" />
      <PageHeader
        title="Compare boots"
        summary={data && <p>{summaryOf(data)}</p>}
        actions={
          <>
            <SavedViews />
            <LinkButton href={compareHref({ set: sets.base, base: sets.set })}>Swap</LinkButton>
          </>
        }
      />
      <div className="grid items-start gap-5 lg:grid-cols-2">
        <SetPanel side="base" title="Baseline" sets={sets} url={url} compared={data?.base} />
        <SetPanel side="set" title="These boots" sets={sets} url={url} compared={data?.set} />
      </div>
      {data ? (
        <CompareBody comparison={data} />
      ) : query.error ? (
        <ErrorState
          title="Could not compare the boots."
          text={readableError(query.error)}
          onRetry={() => query.refetch()}
        />
      ) : (
        <LoadingState label="Comparing the boots">
          <Skeleton className="h-80 w-full rounded-lg" />
        </LoadingState>
      )}
    </Page>
  )
}

function CompareBody({ comparison }: { comparison: Comparison }) {
  const { set, base } = comparison
  if (set.figures.readyCount + base.figures.readyCount === 0)
    return <EmptyState title="No boots became ready." text="Clear a filter or choose a longer period." />
  return (
    <>
      <ComparePhases comparison={comparison} />
      <CompareDistributions comparison={comparison} />
      <CompareFiles comparison={comparison} />
    </>
  )
}

interface SetPanelProps {
  side: keyof BootSets
  title: string
  sets: BootSets
  url: ReturnType<typeof useUrlFilters<typeof compareShape>>
  compared: Comparison['set'] | undefined
}

/** The filters of one set, and what they find. */
function SetPanel({ side, title, sets, url, compared }: SetPanelProps) {
  const filters = sets[side]
  const names = Object.keys(filters)
  const clear = () => url.setFilters(Object.fromEntries(names.map((name) => [parameterOf(side, name), ''])))
  return (
    <Panel title={title} aside={compared && <SetLink filters={filters} compared={compared} />}>
      <div className="flex flex-col gap-3">
        <BootFilterBar
          label={`Filters: ${title}`}
          filters={filters}
          filtered={names.length > 0}
          bind={(name) => url.bind(parameterOf(side, name))}
          setFilters={(values) => url.setFilters(parametersOf(side, values))}
          clearFilters={clear}
          firstPeriod="Last 7 days"
        />
        {compared && <SetFigures compared={compared} />}
      </div>
    </Panel>
  )
}

function SetLink({ filters, compared }: { filters: BootSets['set']; compared: Comparison['set'] }) {
  return (
    <TextLink href={bootsHref(filters, compared)}>
      {countText(compared.sample.bootCount, compared.sample.share)} boots
    </TextLink>
  )
}

function SetFigures({ compared: { sample, figures } }: { compared: Comparison['set'] }) {
  const { p50Us, p95Us, p99Us } = figures
  const times = [
    ['p50', p50Us],
    ['p95', p95Us],
    ['p99', p99Us],
  ] as const
  return (
    <div className="flex flex-col gap-1 text-sm">
      <p className="flex flex-wrap gap-x-4">
        {times.map(([name, us]) => (
          <span key={name} className="text-ink-soft">
            {name} <b className="font-medium text-ink">{us === null ? '–' : formatDuration(us)}</b>
          </span>
        ))}
      </p>
      <p className="text-ink-faint text-xs">{sampleText(sample)}</p>
    </div>
  )
}
