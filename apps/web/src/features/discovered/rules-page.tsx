'use client'

import { useQuery } from '@tanstack/react-query'
import { z } from 'zod'
import { SelectField } from '../../components/field'
import { Page, PageHeader } from '../../components/page-header'
import { EmptyState, ErrorState, LoadingState, Skeleton } from '../../components/states'
import { readableError } from '../../lib/readable-error'
import { useTRPC } from '../../lib/trpc'
import { useUrlFilters } from '../../lib/use-url-filters'
import { PageName } from '../shell/breadcrumbs'
import { RulesOfSite } from './rules-of-site'

const filterShape = { site: z.uuid().optional() }
const sitesMax = 100

export function RulesPage() {
  const trpc = useTRPC()
  const { filters, setFilter } = useUrlFilters(filterShape)
  const sites = useQuery(trpc.site.list.queryOptions({ limit: sitesMax }))
  const options = sites.data?.items ?? []
  const site = options.find(({ id }) => id === filters.site) ?? options[0]
  return (
    <Page>
      <PageName name="Rules" />
      <PageHeader title="Rules" summary="Rules run top to bottom. The first match wins." />
      {site ? (
        <>
          <div className="w-full sm:w-72">
            <SelectField
              label="Site"
              value={site.id}
              options={options.map(({ id, name }) => ({ value: id, label: name }))}
              onChange={(value) => setFilter('site', value)}
            />
          </div>
          <RulesOfSite key={site.id} siteId={site.id} siteName={site.name} />
        </>
      ) : sites.error ? (
        <ErrorState
          title="Could not load the sites."
          text={readableError(sites.error)}
          onRetry={() => sites.refetch()}
        />
      ) : sites.data ? (
        <EmptyState title="No sites yet." text="Rules belong to a site. Create a site first." />
      ) : (
        <LoadingState label="Loading sites">
          <Skeleton className="h-64 w-full rounded-lg" />
        </LoadingState>
      )}
    </Page>
  )
}
