'use client'

import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { Button, DownloadLink } from '../../components/button'
import { FilterBar, InstantFilter, SelectFilter } from '../../components/filter'
import { Icon } from '../../components/icon'
import { Instant } from '../../components/instant'
import { ObjectFilter } from '../../components/object-picker'
import { EmptyState, ErrorState, LoadingState, Page, PageHeader, Panel, Skeleton } from '../../components/page'
import { useFirstPaint } from '../../lib/first-paint'
import { readableError, useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { useUrlFilters } from '../../lib/use-url-filters'
import { HelpLink } from '../help/help-link'
import { helpTopics } from '../help/help-links'
import { FaultsPanel } from './faults-panel'
import { firstPeriod, networkExportHref, networkInput, networkShape, periodOptions } from './network-inputs'
import { type NetworkReport, summaryOf } from './network-text'
import { PathsTable } from './paths-table'

type Url = ReturnType<typeof useUrlFilters<typeof networkShape>>

/** A report for the owners of the networks between edges and devices. */
export function NetworkPage() {
  const url = useUrlFilters(networkShape)
  const paint = useFirstPaint()
  // biome-ignore lint/correctness/useExhaustiveDependencies: the boots of the first paint stay until a filter changes
  const input = useMemo(() => networkInput(url.filters, paint ? new Date(paint.now) : new Date()), [url.filters])
  const query = useQuery(useTRPC().network.report.queryOptions(input, { placeholderData: keepPreviousData }))
  const { data } = query
  return (
    <Page>
      <PageHeader
        title="Network"
        summary={data && <Summary report={data} />}
        actions={
          <div className="flex flex-wrap items-center gap-2 print:hidden">
            <HelpLink to={helpTopics.network}>What is told, and when</HelpLink>
            <DownloadLink href={networkExportHref(input)}>
              <Icon name="download" size={14} /> CSV
            </DownloadLink>
            <Button onClick={() => window.print()}>Print</Button>
          </div>
        }
      />
      <Filters url={url} />
      {data ? (
        <Report report={data} />
      ) : query.error ? (
        <ErrorState
          title="Could not read the boots."
          text={readableError(query.error)}
          onRetry={() => query.refetch()}
        />
      ) : (
        <LoadingState label="Reading the boots">
          <Skeleton className="h-96 w-full rounded-lg" />
        </LoadingState>
      )}
    </Page>
  )
}

function Summary({ report }: { report: NetworkReport }) {
  return (
    <p>
      {summaryOf(report)} From <Instant at={report.since} full /> to <Instant at={report.until} full />.
    </p>
  )
}

function Filters({ url: { filters, bind, filtered, clearFilters } }: { url: Url }) {
  const sites = usePicker('site', {})
  return (
    <div className="print:hidden">
      <FilterBar onClear={filtered ? clearFilters : undefined}>
        <ObjectFilter
          label="Site"
          picker={sites}
          chosen={filters.site ? { value: filters.site, label: 'Selected site' } : null}
          {...bind('site')}
        />
        <SelectFilter label="Period" first={firstPeriod} options={periodOptions} {...bind('period')} />
        <InstantFilter label="From" {...bind('since')} />
        <InstantFilter label="Until" {...bind('until')} />
      </FilterBar>
    </div>
  )
}

function Report({ report }: { report: NetworkReport }) {
  if (report.paths.length === 0)
    return (
      <EmptyState
        title="No boot has measured its network."
        text="Devices measure it while they boot, with a boot program of this release. Choose a longer period."
      />
    )
  return (
    <>
      <FaultsPanel report={report} />
      <Panel
        title="Segments and network cards"
        flush
        aside={`Shares in brackets: 95 % confidence. Below ${report.bootsMin} boots, nothing is claimed of packets.`}
      >
        <PathsTable paths={report.paths} />
      </Panel>
      {report.otherPaths > 0 && (
        <p className="text-ink-soft text-sm">
          {report.otherPaths} more have fewer faults. Choose a site to see all of its segments.
        </p>
      )}
    </>
  )
}
