'use client'

import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { z } from 'zod'
import { Button } from '../../components/button'
import { FilterBar, SelectFilter } from '../../components/filter'
import { ObjectFilter } from '../../components/object-picker'
import { EmptyState, Page, PageHeader } from '../../components/page'
import { PagedList } from '../../components/paged-list'
import { nextPage, useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { useUrlFilters } from '../../lib/use-url-filters'
import { HelpLink } from '../help/help-link'
import { helpTopics } from '../help/help-links'
import { alertColumns } from './alert-columns'
import { alertRefreshMs } from './alert-refresh'
import { MailDialog } from './mail-dialog'
import { OpenCauses } from './open-causes'

const filterShape = {
  state: z.enum(['closed', 'all']).optional(),
  kind: z.enum(['objective', 'failures']).optional(),
  site: z.uuid().optional(),
  collection: z.uuid().optional(),
}
const stateOptions = [
  { value: 'closed', label: 'Closed' },
  { value: 'all', label: 'Open and closed' },
]
const kindOptions = [
  { value: 'failures', label: 'Failed boots' },
  { value: 'objective', label: 'Missed objectives' },
]

/** Lists open alerts, the newest first. */
export function AlertsPage() {
  const trpc = useTRPC()
  const { filters, bind, clearFilters, filtered } = useUrlFilters(filterShape)
  const [isMailOpen, setMailOpen] = useState(false)
  const { state = 'open', kind, site, collection } = filters
  const query = useInfiniteQuery(
    trpc.alert.list.infiniteQueryOptions(
      {
        ...(state !== 'all' && { state }),
        ...(kind && { kind }),
        ...(site && { siteId: site }),
        ...(collection && { collectionId: collection }),
      },
      { ...nextPage, refetchInterval: alertRefreshMs },
    ),
  )
  return (
    <Page>
      <PageHeader
        title="Alerts"
        summary="Causes that many boots fail of, and objectives that are missed. Alerts open and close by themselves."
        actions={
          <>
            <HelpLink to={helpTopics.alerts}>How alerts open and close</HelpLink>
            <Button onClick={() => setMailOpen(true)}>Mail</Button>
          </>
        }
      />
      <FilterBar onClear={filtered ? clearFilters : undefined}>
        <SelectFilter label="State" first="State: open" options={stateOptions} {...bind('state')} />
        <SelectFilter label="Kind" options={kindOptions} {...bind('kind')} />
        <Chosen noun="site" label="Site" {...bind('site')} />
        <Chosen noun="collection" label="Collection" {...bind('collection')} />
      </FilterBar>
      {state !== 'closed' && !filtered && <OpenCauses />}
      <div className="rounded-lg border border-line bg-surface">
        <PagedList
          label="Alerts"
          query={query}
          columns={alertColumns}
          rowKey={({ id }) => id}
          empty={<NoAlerts filtered={filtered} />}
        />
      </div>
      {isMailOpen && <MailDialog onClose={() => setMailOpen(false)} />}
    </Page>
  )
}

interface ChosenProps {
  noun: 'site' | 'collection'
  label: string
  value: string | undefined
  onChange: (value: string) => void
}

function Chosen({ noun, label, value, onChange }: ChosenProps) {
  return (
    <ObjectFilter
      label={label}
      picker={usePicker(noun, {})}
      value={value}
      chosen={value ? { value, label: `Selected ${noun}` } : null}
      onChange={onChange}
    />
  )
}

function NoAlerts({ filtered }: { filtered: boolean }) {
  return filtered ? (
    <EmptyState title="No alerts match these filters." text="Clear a filter to see more." />
  ) : (
    <EmptyState
      title="No open alerts."
      text="An alert opens when boots of a site fail of one cause more than usual, or miss an objective. Set objectives on the pages of sites and collections."
      action={<HelpLink to={helpTopics.objectives}>What an objective is</HelpLink>}
    />
  )
}
