'use client'

import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { z } from 'zod'
import { DownloadLink } from '../../components/button'
import { FilterBar, SearchFilter, SelectFilter } from '../../components/filter'
import { Icon } from '../../components/icon'
import { EmptyState, Page, PageHeader } from '../../components/page'
import { PagedList } from '../../components/paged-list'
import { nextPage, useTRPC } from '../../lib/trpc'
import { useUrlFilters } from '../../lib/use-url-filters'
import { useMay } from '../session/use-may'
import { auditColumns } from './audit-columns'

/** The noun before the dot of a procedure's name. */
const nounOptions = [
  { value: 'organization.', label: 'Organization' },
  { value: 'member.', label: 'Members' },
  { value: 'invitation.', label: 'Invitations' },
  { value: 'account.', label: 'Accounts' },
  { value: 'farm.', label: 'Farms' },
  { value: 'site.', label: 'Sites' },
  { value: 'edge.', label: 'Edges' },
  { value: 'collection.', label: 'Collections' },
  { value: 'device.', label: 'Devices' },
  { value: 'discovered.', label: 'Discovered devices' },
  { value: 'vdisk.', label: 'vDisks' },
  { value: 'bootMenu.', label: 'Boot menus' },
  { value: 'schedule.', label: 'Schedules' },
  { value: 'rollout.', label: 'Rollouts' },
  { value: 'apiKey.', label: 'API keys' },
  { value: 'serviceAccount.', label: 'Service accounts' },
  { value: 'webhook.', label: 'Webhooks' },
]
const actorOptions = [
  { value: 'person', label: 'People' },
  { value: 'api_key', label: 'API keys' },
  { value: 'service_account', label: 'Service accounts' },
  { value: 'edge', label: 'Edges' },
  { value: 'system', label: 'The control plane' },
  { value: 'platform', label: 'Platform operators' },
]
const periodOptions = [
  { value: '1', label: 'Last 24 hours' },
  { value: '7', label: 'Last 7 days' },
  { value: '30', label: 'Last 30 days' },
  { value: '365', label: 'Last year' },
]

const actorKind = z.enum(['person', 'api_key', 'service_account', 'edge', 'system', 'platform'])
const dayMs = 86_400_000

const auditFilterShape = {
  search: z.string().max(64).optional(),
  noun: z.string().max(32).optional(),
  actor: actorKind.optional(),
  period: z.enum(['1', '7', '30', '365']).optional(),
  object: z.uuid().optional(),
}

interface Filters {
  search?: string | undefined
  noun?: string | undefined
  actor?: z.infer<typeof actorKind> | undefined
  period?: string | undefined
  object?: string | undefined
}

/** The filters of the URL as the API takes them. */
function auditInput({ search, noun, actor, period, object }: Filters, now: Date) {
  return {
    ...(search ? { search } : {}),
    ...(noun ? { action: noun } : {}),
    ...(actor ? { actorKind: actor } : {}),
    ...(period ? { since: new Date(now.getTime() - Number(period) * dayMs).toISOString() } : {}),
    ...(object ? { objectId: object } : {}),
  }
}

/** The address of the same entries as a file. */
function exportHref(input: Record<string, string>, format: 'csv' | 'jsonl'): string {
  return `/api/v1/audit-exports?${new URLSearchParams({ ...input, format })}`
}

export function AuditPage() {
  const trpc = useTRPC()
  const mayRead = useMay('audit.read')
  const { filters, bind, clearFilters, filtered } = useUrlFilters(auditFilterShape)
  const input = useMemo(() => auditInput(filters, new Date()), [filters])
  const query = useInfiniteQuery(
    trpc.audit.list.infiniteQueryOptions(input, {
      ...nextPage,
      placeholderData: keepPreviousData,
    }),
  )
  return (
    <Page>
      <PageHeader
        title="Audit log"
        summary="All changes, newest first. Entries cannot be changed. Retention is set by the server’s operator."
        actions={mayRead ? <ExportLinks input={input} /> : undefined}
      />
      <FilterBar onClear={filtered ? clearFilters : undefined}>
        <SearchFilter label="Search names" {...bind('search')} />
        <SelectFilter label="Type" options={nounOptions} {...bind('noun')} />
        <SelectFilter label="Actor" options={actorOptions} {...bind('actor')} />
        <SelectFilter label="Period" options={periodOptions} {...bind('period')} />
      </FilterBar>
      <div className="rounded-lg border border-line bg-surface">
        <PagedList
          label="Audit log"
          query={query}
          columns={auditColumns}
          rowKey={({ id }) => id}
          empty={<NoEntries filtered={filtered} />}
        />
      </div>
    </Page>
  )
}

function ExportLinks({ input }: { input: Record<string, string> }) {
  return (
    <>
      {(['csv', 'jsonl'] as const).map((format) => (
        <DownloadLink key={format} href={exportHref(input, format)}>
          <Icon name="download" size={14} /> {format === 'csv' ? 'CSV' : 'JSON lines'}
        </DownloadLink>
      ))}
    </>
  )
}

function NoEntries({ filtered }: { filtered: boolean }) {
  return filtered ? (
    <EmptyState title="No entries match these filters." text="Clear a filter or choose a longer period." />
  ) : (
    <EmptyState title="No changes yet." text="Every change appears here with the person who made it." />
  )
}
