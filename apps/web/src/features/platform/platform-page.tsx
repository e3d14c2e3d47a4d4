'use client'

import type { RouterOutputs } from '@bootfarm/api/router'
import { useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { ConfirmDialog, FormDialog } from '../../components/dialog'
import { TextField } from '../../components/field'
import { SearchFilter } from '../../components/filter'
import { Instant } from '../../components/instant'
import { EmptyState, ErrorState, Page, PageHeader, Panel, Unknown } from '../../components/page'
import { PagedList } from '../../components/paged-list'
import type { Column } from '../../components/table'
import { useFailureToast } from '../../components/toast'
import { formatCount } from '../../lib/format-quantity'
import { formProblem, nextPage, readableError, useRefresh, useTRPC } from '../../lib/trpc'
import { useSaved } from '../objects/object-dialog'
import { quotaTitles } from '../organization/organization-types'
import { HealthPanels } from './health-panels'
import { organizationColumns, type PlatformOrganization } from './organization-columns'

/** For operators of the installation: its health, and every organization's figures; never a tenant's content. */
export function PlatformPage() {
  const trpc = useTRPC()
  const [search, setSearch] = useState('')
  const [limiting, setLimiting] = useState<PlatformOrganization | null>(null)
  const [suspending, setSuspending] = useState<PlatformOrganization | null>(null)
  const health = useQuery(trpc.platform.health.queryOptions())
  const list = useInfiniteQuery(
    trpc.platform.organizations.infiniteQueryOptions(search.trim() ? { search: search.trim() } : {}, nextPage),
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

interface SuspendDialogProps {
  /** Null before the first request. */
  organization: PlatformOrganization | null
  onClose: () => void
}

function SuspendDialog({ organization, onClose }: SuspendDialogProps) {
  const change = useMutation(
    useTRPC().platform.setSuspended.mutationOptions({
      onSuccess: useRefresh(),
      onError: useFailureToast('Could not update the organization.'),
    }),
  )
  const isSuspended = Boolean(organization?.suspendedAt)
  const name = organization?.name ?? ''
  return (
    <ConfirmDialog
      open={organization !== null}
      onOpenChange={(open) => !open && onClose()}
      title={isSuspended ? `Lift the suspension of ${name}?` : `Suspend ${name}?`}
      action={isSuspended ? 'Lift suspension' : 'Suspend organization'}
      onConfirm={() => organization && change.mutate({ organizationId: organization.id, suspended: !isSuspended })}
    >
      <p>
        {isSuspended
          ? 'Members can make changes again.'
          : 'The organization becomes read-only, and devices still boot. Members see a notice on each page.'}
      </p>
    </ConfirmDialog>
  )
}

interface QuotasDialogProps {
  organization: PlatformOrganization
  onClose: () => void
}

/** An empty field is no limit. */
function QuotasDialog({ organization, onClose }: QuotasDialogProps) {
  const { id: organizationId, name, quotas } = organization
  const [texts, setTexts] = useState(() =>
    Object.fromEntries(quotas.map((quota) => [quota.name, quota.allowed === null ? '' : String(quota.allowed)])),
  )
  const save = useMutation(useTRPC().platform.setQuotas.mutationOptions({ onSuccess: useSaved(onClose) }))
  const countOf = (text: string) => (text.trim() === '' ? null : Number(text))
  const isRight = Object.values(texts).every((text) => /^\s*\d{0,8}\s*$/.test(text))
  return (
    <FormDialog
      title={`Quotas of ${name}`}
      action="Save quotas"
      busy={save.isPending}
      disabled={!isRight}
      failure={formProblem(save.error)}
      onClose={onClose}
      onSubmit={() =>
        save.mutate({
          organizationId,
          quotas: Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, countOf(text)])),
        })
      }
    >
      <p className="text-ink-soft text-sm">
        Leave a field empty for no limit. A quota below the current usage removes nothing but blocks new objects.
      </p>
      <div className="grid grid-cols-2 gap-4">
        {quotas.map((quota) => (
          <TextField
            key={quota.name}
            label={quotaTitles[quota.name]}
            value={texts[quota.name] ?? ''}
            onChange={(text) => setTexts((now) => ({ ...now, [quota.name]: text }))}
            placeholder="unlimited"
            hint={`In use: ${formatCount(quota.used)}`}
            maxLength={8}
          />
        ))}
      </div>
    </FormDialog>
  )
}

type PlatformEvent = RouterOutputs['platform']['events']['items'][number]

const actionText = new Map(
  Object.entries({
    'organization.founded': 'Organization created (self-service)',
    'organization.askDeletion': 'Deletion requested',
    'organization.cancelDeletion': 'Deletion cancelled',
    'organization.deleted': 'Organization deleted',
    'organization.suspend': 'Suspended',
    'organization.unsuspend': 'Suspension lifted',
    'organization.setQuotas': 'Quotas changed',
  }),
)

const columns: Column<PlatformEvent>[] = [
  { title: 'Event', cell: ({ action }) => actionText.get(action) ?? action },
  { title: 'Time', cell: ({ at }) => <Instant at={at} /> },
  { title: 'Organization', from: 'sm', wide: true, cell: ({ organizationId }) => <Id id={organizationId} /> },
  { title: 'Actor', from: 'lg', cell: ({ actorUserId }) => <Id id={actorUserId} /> },
]

function Id({ id }: { id: string | null }) {
  return id ? <span className="font-mono text-ink-soft text-xs">{id}</span> : <Unknown label="nobody" />
}

/** Actions on whole organizations; this log outlives them. */
function EventsPanel() {
  const query = useInfiniteQuery(useTRPC().platform.events.infiniteQueryOptions({ limit: 10 }, nextPage))
  return (
    <Panel title="Platform log" flush>
      <PagedList
        label="Platform log"
        query={query}
        columns={columns}
        rowKey={({ id }) => id}
        empty={<EmptyState title="No events yet." text="Changes of quotas, suspensions and deletions appear here." />}
      />
    </Panel>
  )
}
