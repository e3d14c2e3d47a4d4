'use client'

import { useInfiniteQuery } from '@tanstack/react-query'
import { z } from 'zod'
import { ObjectLink, TextLink } from '../../components/button'
import { FilterBar, SelectFilter } from '../../components/filter'
import { Instant } from '../../components/instant'
import { EmptyState, Page, PageHeader } from '../../components/page'
import { PagedList } from '../../components/paged-list'
import type { Column } from '../../components/table'
import { nextPage, useTRPC } from '../../lib/trpc'
import { useUrlFilters } from '../../lib/use-url-filters'
import { HelpLink } from '../help/help-link'
import { helpTopics } from '../help/help-links'
import { FindingTag } from './finding-tag'
import { type Finding, factorTexts, stateTexts } from './finding-text'

const filterShape = {
  state: z.enum(['all', 'open', 'acknowledged', 'muted', 'closed']).optional(),
  site: z.uuid().optional(),
  vdisk: z.uuid().optional(),
}
const stateOptions = [
  ...Object.entries(stateTexts).map(([value, label]) => ({ value, label })),
  { value: 'all', label: 'All' },
]
/** A job looks for findings each 10 seconds. */
const refreshMs = 10_000

const columns: Column<Finding>[] = [
  {
    title: 'Finding',
    wide: true,
    cell: (finding) => (
      <span className="wrap-anywhere whitespace-normal">
        <ObjectLink href={`/findings/${finding.id}`}>{finding.sentence}</ObjectLink>
      </span>
    ),
  },
  { title: 'Status', cell: ({ state }) => <FindingTag state={state} /> },
  { title: 'Cause', from: 'md', cell: ({ factor }) => factorTexts[factor] },
  {
    title: 'vDisk',
    from: 'lg',
    cell: ({ vdiskId, vdiskName }) => <TextLink href={`/vdisks/${vdiskId}`}>{vdiskName}</TextLink>,
  },
  { title: 'Site', from: 'md', cell: ({ site }) => <TextLink href={`/sites/${site.id}`}>{site.name}</TextLink> },
  { title: 'Since', align: 'right', from: 'sm', cell: ({ since }) => <Instant at={since} /> },
]

export function FindingsPage() {
  const { filters, bind, filtered, clearFilters } = useUrlFilters(filterShape)
  const { state = 'current', site, vdisk } = filters
  const query = useInfiniteQuery(
    useTRPC().finding.list.infiniteQueryOptions(
      {
        ...(state === 'all' ? {} : { state }),
        ...(site && { siteId: site }),
        ...(vdisk && { vdiskId: vdisk }),
      },
      { ...nextPage, refetchInterval: refreshMs },
    ),
  )
  return (
    <Page>
      <PageHeader
        title="Findings"
        summary="Changes that made boots slower or fail more often."
        actions={<HelpLink to={helpTopics.findings}>What is compared</HelpLink>}
      />
      <FilterBar onClear={filtered ? clearFilters : undefined}>
        <SelectFilter label="Status" first="Open and acknowledged" options={stateOptions} {...bind('state')} />
      </FilterBar>
      <div className="rounded-lg border border-line bg-surface">
        <PagedList
          label="Findings"
          query={query}
          columns={columns}
          rowKey={({ id }) => id}
          empty={
            filtered ? (
              <EmptyState title="No findings match these filters." text="Choose another status." />
            ) : (
              <EmptyState
                title="Nothing found."
                text="Each boot is compared with earlier boots of the same hardware, site and vDisk. A version, edge release, setting or network segment that makes boots slower or fail more often appears here."
              />
            )
          }
        />
      </div>
    </Page>
  )
}
