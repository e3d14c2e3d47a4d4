'use client'

import { useMutation, useQuery } from '@tanstack/react-query'
import Link from 'next/link'
import { useRouter } from 'next/navigation'
import { useState } from 'react'
import { Button } from '../../components/button'
import { TextField } from '../../components/field'
import { Instant } from '../../components/instant'
import { ErrorState, Facts, LoadingState, Page, PageHeader, Panel, Skeleton } from '../../components/page'
import { type Column, Table, TableSkeleton } from '../../components/table'
import { Mono, Tag } from '../../components/tag'
import { formatCount } from '../../lib/format-quantity'
import { readableError, useTRPC } from '../../lib/trpc'
import { ObjectDialog, useSaved } from '../objects/object-dialog'
import { useMay } from '../session/use-may'
import { DeletionPanel } from './deletion-panel'
import { type Organization, type Quota, quotaTitles } from './organization-types'
import { SigningKeyPanel } from './signing-key-panel'

/** Settings of the organization as a whole: its name, what it has and may have, its signing key, its end. */
export function OrganizationPage() {
  const query = useQuery(useTRPC().organization.get.queryOptions({}))
  if (query.isPending)
    return (
      <LoadingState label="Loading organization">
        <Skeleton className="h-40 w-full" />
      </LoadingState>
    )
  if (!query.data)
    return (
      <ErrorState
        title="Could not load the organization."
        text={readableError(query.error)}
        onRetry={() => query.refetch()}
      />
    )
  return <Settings organization={query.data} />
}

function Settings({ organization }: { organization: Organization }) {
  const mayChange = useMay('organization.change', { farmId: null })
  const mayDelete = useMay('organization.delete', { farmId: null })
  const [isRenaming, setRenaming] = useState(false)
  const { name, slug, createdAt, suspendedAt, deleteAfter, contact } = organization
  return (
    <Page>
      <PageHeader
        title={name}
        tags={
          <>
            {suspendedAt && <Tag tone="silent">Suspended</Tag>}
            {deleteAfter && <Tag tone="failed">Deletion scheduled</Tag>}
          </>
        }
        summary="Settings and usage of the organization."
        actions={mayChange && <Button onClick={() => setRenaming(true)}>Rename</Button>}
      />
      <div className="grid gap-5 lg:grid-cols-2">
        <Panel title="Details">
          <Facts
            facts={[
              { label: 'Short name', value: <Mono>{slug}</Mono> },
              { label: 'Created', value: <Instant at={createdAt} /> },
              { label: 'Operator contact', value: contact },
              {
                label: 'Objects',
                value: (
                  <Link href="/farms" className="underline underline-offset-4">
                    View farms and sites
                  </Link>
                ),
              },
            ]}
          />
        </Panel>
        <UsagePanel contact={contact} />
      </div>
      {mayChange && <SigningKeyPanel />}
      {mayDelete && <DeletionPanel organization={organization} />}
      {isRenaming && <RenameDialog organization={organization} onClose={() => setRenaming(false)} />}
    </Page>
  )
}

function RenameDialog({ organization, onClose }: { organization: Organization; onClose: () => void }) {
  const [name, setName] = useState(organization.name)
  const router = useRouter()
  const saved = useSaved(onClose)
  // The frame around the page has the name from the server.
  const onSuccess = () => {
    router.refresh()
    saved()
  }
  const rename = useMutation(useTRPC().organization.rename.mutationOptions({ onSuccess }))
  return (
    <ObjectDialog
      title="Rename organization"
      action="Rename organization"
      saving={rename}
      disabled={name.trim() === ''}
      onSave={(revision = organization.revision) => rename.mutate({ name, revision })}
      onClose={onClose}
    >
      <TextField label="Name" value={name} onChange={setName} maxLength={80} hint="The short name does not change." />
    </ObjectDialog>
  )
}

const columns: Column<Quota>[] = [
  { title: 'Resource', wide: true, cell: ({ name }) => quotaTitles[name] },
  { title: 'Used', align: 'right', cell: ({ used }) => formatCount(used) },
  {
    title: 'Limit',
    align: 'right',
    cell: ({ allowed }) => (allowed === null ? 'Unlimited' : formatCount(allowed)),
  },
  {
    title: 'Status',
    align: 'right',
    cell: ({ used, allowed }) =>
      allowed !== null && used >= allowed ? <Tag tone="silent">Full</Tag> : <Tag>Available</Tag>,
  },
]

/** Usage of everything with a quota. */
function UsagePanel({ contact }: { contact: string | null }) {
  const query = useQuery(useTRPC().organization.usage.queryOptions({}))
  return (
    <Panel title="Usage and quotas" flush>
      {query.isPending && <TableSkeleton label="Usage" />}
      {query.error && !query.data && <ErrorState title="Could not load the usage." text={readableError(query.error)} />}
      {query.data && (
        <Table label="Usage and quotas" columns={columns} rows={query.data.quotas} rowKey={({ name }) => name} />
      )}
      <p className="border-line border-t px-4 py-3 text-ink-soft text-xs">
        Objects in the trash do not count. For higher limits, contact {contact ?? 'the operator of this installation'}.
      </p>
    </Panel>
  )
}
