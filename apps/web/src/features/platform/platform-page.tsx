'use client'

import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { SearchFilter } from '../../components/filter'
import { Page, PageHeader } from '../../components/page-header'
import { PagedList } from '../../components/paged-list'
import { EmptyState, ErrorState } from '../../components/states'
import { readableError } from '../../lib/readable-error'
import { useTRPC } from '../../lib/trpc'
import { EventsPanel } from './events-panel'
import { HealthPanels } from './health-panels'
import { organizationColumns, type PlatformOrganization } from './organization-columns'
import { QuotasDialog } from './quotas-dialog'
import { SuspendDialog } from './suspend-dialog'

/** For who runs the installation: its health, and every organization's figures; never what a tenant has. */
export function PlatformPage() {
  const trpc = useTRPC()
  const [search, setSearch] = useState('')
  const [limiting, setLimiting] = useState<PlatformOrganization | null>(null)
  const [suspending, setSuspending] = useState<PlatformOrganization | null>(null)
  const health = useQuery(trpc.platform.health.queryOptions())
  const list = useInfiniteQuery(
    trpc.platform.organizations.infiniteQueryOptions(search.trim() ? { search: search.trim() } : {}, {
      getNextPageParam: (page) => page.nextCursor,
    }),
  )
  if (health.error)
    return (
      <ErrorState
        title="You cannot view this page, or it could not be loaded."
        text={readableError(health.error)}
        onRetry={() => health.refetch()}
      />
    )
  return (
    <Page>
      <PageHeader
        title="Platform"
        summary="Health of this installation and the limits of its organizations. Their data is not shown here."
      />
      {health.data && <HealthPanels health={health.data} />}
      <section aria-labelledby="organizations" className="rounded-lg border border-line bg-surface">
        <header className="flex flex-wrap items-center justify-between gap-3 border-line border-b px-4 py-2">
          <h2 id="organizations" className="font-medium text-ink text-sm">
            Organizations
          </h2>
          <SearchFilter label="Search organizations" value={search} onChange={setSearch} />
        </header>
        <PagedList
          label="Organizations"
          query={list}
          columns={organizationColumns({ onLimit: setLimiting, onSuspend: setSuspending })}
          rowKey={({ id }) => id}
          empty={<EmptyState title="No organizations found." text="No name matches this search." />}
        />
      </section>
      <EventsPanel />
      {limiting && <QuotasDialog organization={limiting} onClose={() => setLimiting(null)} />}
      <SuspendDialog organization={suspending} onClose={() => setSuspending(null)} />
    </Page>
  )
}
