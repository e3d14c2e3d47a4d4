'use client'

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { FormDialog } from '../../components/dialog'
import { Notice, TextField } from '../../components/field'
import { Instant } from '../../components/instant'
import { Panel } from '../../components/page'
import { useFailureToast, useToast } from '../../components/toast'
import { formProblem, useTRPC, useTRPCClient } from '../../lib/trpc'
import { useSaved } from '../objects/object-dialog'
import type { Organization } from './organization-types'

/** For owners: deletes the organization, or cancels its deletion. */
export function DeletionPanel({ organization }: { organization: Organization }) {
  const trpc = useTRPC()
  const queries = useQueryClient()
  const toast = useToast()
  const [isAsking, setAsking] = useState(false)
  const cancel = useMutation(
    trpc.organization.cancelDeletion.mutationOptions({
      onSuccess: () => {
        void queries.invalidateQueries()
        toast({ title: `Deletion of ${organization.name} cancelled.` })
      },
      onError: useFailureToast('Could not cancel the deletion.'),
    }),
  )
  const { deleteAfter, deleteAskedAt, deletionGraceDays, suspendedAt } = organization
  return (
    <Panel title="Delete organization">
      <div className="flex flex-wrap items-center justify-between gap-4">
        <p className="max-w-2xl text-ink-soft text-sm">
          {deleteAfter && deleteAskedAt ? (
            <>
              Requested <Instant at={deleteAskedAt} />. All data is deleted after <Instant at={deleteAfter} full />.
              Everything keeps working until then.
            </>
          ) : (
            <>
              This deletes all devices, vDisks, boots, members, keys and the audit log, {deletionGraceDays} days after
              the request. You can cancel until then.
            </>
          )}
        </p>
        {deleteAfter ? (
          <Button look="primary" busy={cancel.isPending} onClick={() => cancel.mutate({})}>
            Cancel deletion
          </Button>
        ) : (
          <Button look="danger" disabled={suspendedAt !== null} onClick={() => setAsking(true)}>
            Delete organization
          </Button>
        )}
      </div>
      {isAsking && <AskDeletionDialog organization={organization} onClose={() => setAsking(false)} />}
    </Panel>
  )
}

interface AskDeletionDialogProps {
  organization: Organization
  onClose: () => void
}

/**
 * The name is typed, and the password and code given again. Without a password, as by single sign-on, the sign-in must
 * be fresh.
 */
function AskDeletionDialog({ organization, onClose }: AskDeletionDialogProps) {
  const { name: wanted, deletionGraceDays } = organization
  const client = useTRPCClient()
  const trpc = useTRPC()
  const [name, setName] = useState('')
  const [password, setPassword] = useState('')
  const [code, setCode] = useState('')
  const { data: account } = useQuery(trpc.session.account.queryOptions())
  const ask = useMutation({
    ...trpc.organization.askDeletion.mutationOptions({ onSuccess: useSaved(onClose) }),
    async mutationFn() {
      if (password !== '') await client.session.confirm.mutate({ password, ...(code.trim() ? { code } : {}) })
      return client.organization.askDeletion.mutate({ name })
    },
  })
  return (
    <FormDialog
      title={`Delete ${wanted}?`}
      action="Request deletion"
      busy={ask.isPending}
      disabled={name.trim() !== wanted}
      failure={formProblem(ask.error)}
      onClose={onClose}
      onSubmit={() => ask.mutate({ name })}
    >
      <Notice tone="silent">
        Everything is deleted in {deletionGraceDays} days. Every owner gets an e-mail, every member sees a notice on
        each page, and any owner can cancel.
      </Notice>
      <TextField label={`Type the organization’s name: ${wanted}`} value={name} onChange={setName} maxLength={80} />
      <TextField
        label="Your password"
        type="password"
        value={password}
        onChange={setPassword}
        maxLength={128}
        hint={account?.hasTotp ? undefined : 'Not needed within ten minutes of signing in.'}
      />
      {account?.hasTotp && (
        <TextField
          label="Authentication code"
          value={code}
          onChange={setCode}
          maxLength={20}
          mono
          hint="Six digits from your authenticator."
        />
      )}
    </FormDialog>
  )
}
