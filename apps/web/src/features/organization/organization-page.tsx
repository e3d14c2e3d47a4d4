'use client'

import { useQuery } from '@tanstack/react-query'
import Link from 'next/link'
import { useState } from 'react'
import { Button } from '../../components/button'
import { Instant } from '../../components/instant'
import { Page, PageHeader } from '../../components/page-header'
import { Facts, Panel } from '../../components/panel'
import { ErrorState, LoadingState, Skeleton } from '../../components/states'
import { Tag } from '../../components/tag'
import { readableError } from '../../lib/readable-error'
import { useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'
import { DeletionPanel } from './deletion-panel'
import type { Organization } from './organization-types'
import { RenameDialog } from './rename-dialog'
import { SigningKeyPanel } from './signing-key-panel'
import { UsagePanel } from './usage-panel'

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
              { label: 'Short name', value: <span className="font-mono text-xs">{slug}</span> },
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
