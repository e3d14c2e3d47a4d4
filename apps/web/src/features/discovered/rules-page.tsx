'use client'

import { useQuery } from '@tanstack/react-query'
import { z } from 'zod'
import { ObjectPicker } from '../../components/object-picker'
import { EmptyState, ErrorState, LoadingState, Page, PageHeader, Skeleton } from '../../components/page'
import { readableError, useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { useUrlFilters } from '../../lib/use-url-filters'
import { PageName } from '../shell/object-page'
import { RulesOfSite } from './rules-of-site'

const filterShape = { site: z.uuid().optional() }

export function RulesPage() {
  const { filters, setFilter } = useUrlFilters(filterShape)
  const sites = usePicker('site', {})
  const isListed = filters.site === undefined || sites.itemOf(filters.site) !== undefined
  // A link may name a site that is not among the first.
  const linked = useQuery(
    useTRPC().site.get.queryOptions(
      { siteId: filters.site ?? '' },
      { enabled: sites.isLoaded && !isListed, retry: false },
    ),
  )
  const site = sites.itemOf(filters.site ?? '') ?? linked.data ?? (linked.isLoading ? undefined : sites.items[0])
  return (
    <Page>
      <PageName name="Rules" />
      <PageHeader title="Rules" summary="Rules run top to bottom. The first match wins." />
      {site ? (
        <>
          <div className="w-full sm:w-72">
            <ObjectPicker
              label="Site"
              picker={sites}
              value={site.id}
              chosen={{ value: site.id, label: site.name }}
              onChange={(value) => setFilter('site', value)}
            />
          </div>
          <RulesOfSite key={site.id} siteId={site.id} siteName={site.name} />
        </>
      ) : sites.error ? (
        <ErrorState title="Could not load the sites." text={readableError(sites.error)} onRetry={sites.retry} />
      ) : sites.isLoaded && !linked.isLoading ? (
        <EmptyState title="No sites yet." text="Rules belong to a site. Create a site first." />
      ) : (
        <LoadingState label="Loading sites">
          <Skeleton className="h-64 w-full rounded-lg" />
        </LoadingState>
      )}
    </Page>
  )
}
