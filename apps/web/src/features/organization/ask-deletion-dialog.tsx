'use client'

import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { FormDialog } from '../../components/dialog'
import { Notice, TextField } from '../../components/field'
import { formProblem } from '../../lib/readable-error'
import { useTRPC, useTRPCClient } from '../../lib/trpc'
import { useSaved } from '../objects/object-dialog'
import type { Organization } from './organization-types'

interface AskDeletionDialogProps {
  organization: Organization
  onClose: () => void
}

/**
 * The name is typed, and the password and code given again. Without a password, as by single sign-on, the sign-in must
 * be fresh.
 */
export function AskDeletionDialog({ organization, onClose }: AskDeletionDialogProps) {
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
