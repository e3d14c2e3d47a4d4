'use client'

import { useMutation, useQuery } from '@tanstack/react-query'
import { useRouter } from 'next/navigation'
import { useState } from 'react'
import { Button } from '../../components/button'
import { ConfirmButton } from '../../components/dialog'
import { TextField } from '../../components/field'
import { Instant } from '../../components/instant'
import { EmptyState, Facts, LoadingState, Page, PageHeader, Panel, Skeleton } from '../../components/page'
import { useFailureToast, useToast } from '../../components/toast'
import { useRefresh, useTRPC } from '../../lib/trpc'
import { ApiKeyList } from '../api-keys/api-key-list'
import { CreateKeyDialog } from '../api-keys/create-key-dialog'
import { NewKeyPanel } from '../api-keys/new-key-panel'
import { HistoryPanel } from '../audit/history-panel'
import { ObjectDialog, useSaved } from '../objects/object-dialog'
import { useMay } from '../session/use-may'
import { PageName, QueryError } from '../shell/object-page'
import { RolesPanel } from './member-page'
import { type ServiceAccount, ServiceAccountState } from './service-accounts-page'

/** One service account: its roles, its API keys, and what was done with it. */
export function ServiceAccountPage({ serviceAccountId }: { serviceAccountId: string }) {
  const trpc = useTRPC()
  const { data: account, error, refetch } = useQuery(trpc.serviceAccount.get.queryOptions({ serviceAccountId }))
  if (error) return <QueryError noun="service account" error={error} onRetry={refetch} />
  if (!account)
    return (
      <LoadingState label="Loading service account">
        <Skeleton className="h-64" />
      </LoadingState>
    )
  return (
    <Page>
      <PageName name={account.name} />
      <PageHeader
        title={account.name}
        summary="The account of a program."
        actions={account.mayChange && <AccountActions account={account} />}
      />
      <Panel title="Account">
        <Facts
          facts={[
            { label: 'State', value: <ServiceAccountState disabledAt={account.disabledAt} /> },
            { label: 'Created', value: <Instant at={account.createdAt} full /> },
          ]}
        />
      </Panel>
      <RolesPanel member={{ ...account, userId: account.id }} />
      {account.keys && <KeysPanel account={account} />}
      <HistoryPanel objectId={serviceAccountId} />
    </Page>
  )
}

function KeysPanel({ account }: { account: ServiceAccount }) {
  const mayChange = useMay('api_key.change', {})
  const [isCreating, setCreating] = useState(false)
  const [secret, setSecret] = useState<string | null>(null)
  return (
    <>
      <NewKeyPanel secret={secret} />
      <Panel
        title="API keys"
        flush
        aside={
          mayChange &&
          account.disabledAt === null && (
            <Button small onClick={() => setCreating(true)}>
              Create API key
            </Button>
          )
        }
      >
        <ApiKeyList
          label="API keys of this account"
          ownerId={account.id}
          empty={<EmptyState title="No API keys yet." text="The program needs one to use the API." />}
          onSecret={setSecret}
        />
      </Panel>
      {isCreating && (
        <CreateKeyDialog
          owner={{ serviceAccountId: account.id, role: account.grants[0]?.role }}
          onCreated={(made) => {
            setSecret(made)
            setCreating(false)
          }}
          onClose={() => setCreating(false)}
        />
      )}
    </>
  )
}

function AccountActions({ account }: { account: ServiceAccount }) {
  const trpc = useTRPC()
  const router = useRouter()
  const toast = useToast()
  const refresh = useRefresh()
  const [isRenaming, setRenaming] = useState(false)
  const { id: serviceAccountId, name, revision } = account
  const isDisabled = account.disabledAt !== null
  const onError = useFailureToast(`Could not change ${name}`)
  const update = useMutation(trpc.serviceAccount.update.mutationOptions({ onSuccess: refresh, onError }))
  const remove = useMutation(
    trpc.serviceAccount.remove.mutationOptions({
      onSuccess: async () => {
        toast({ title: `${name} deleted` })
        router.push('/service-accounts')
        await refresh()
      },
      onError,
    }),
  )
  return (
    <>
      <Button onClick={() => setRenaming(true)}>Rename</Button>
      {isDisabled ? (
        <Button busy={update.isPending} onClick={() => update.mutate({ serviceAccountId, revision, disabled: false })}>
          Enable
        </Button>
      ) : (
        <ConfirmButton
          label="Disable"
          busy={update.isPending}
          title={`Disable ${name}?`}
          action="Disable service account"
          onConfirm={() => update.mutate({ serviceAccountId, revision, disabled: true })}
        >
          <p>All its API keys are refused from the next request, until somebody enables the account.</p>
        </ConfirmButton>
      )}
      <ConfirmButton
        label="Delete"
        busy={remove.isPending}
        title={`Delete ${name}?`}
        action="Delete service account"
        onConfirm={() => remove.mutate({ serviceAccountId })}
      >
        <p>Its API keys are revoked. What it created remains. You cannot undo this.</p>
      </ConfirmButton>
      {isRenaming && <RenameDialog account={account} onClose={() => setRenaming(false)} />}
    </>
  )
}

function RenameDialog({ account, onClose }: { account: ServiceAccount; onClose: () => void }) {
  const [seen] = useState(account)
  const [name, setName] = useState(seen.name)
  const update = useMutation(useTRPC().serviceAccount.update.mutationOptions({ onSuccess: useSaved(onClose) }))
  return (
    <ObjectDialog
      title={`Rename ${seen.name}`}
      action="Rename"
      saving={update}
      disabled={name.trim() === ''}
      onSave={(revision = seen.revision) => update.mutate({ serviceAccountId: seen.id, revision, name })}
      onClose={onClose}
    >
      <TextField label="Name" value={name} onChange={setName} maxLength={64} />
    </ObjectDialog>
  )
}
