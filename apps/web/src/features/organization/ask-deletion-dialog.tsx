'use client'

import { useMutation } from '@tanstack/react-query'
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

/** The name is typed, and the password given again. Without one, as by single sign-on, the sign-in must be fresh. */
export function AskDeletionDialog({ organization, onClose }: AskDeletionDialogProps) {
  const { name: wanted, deletionGraceDays } = organization
  const client = useTRPCClient()
  const trpc = useTRPC()
  const [name, setName] = useState('')
  const [password, setPassword] = useState('')
  const ask = useMutation({
    ...trpc.organization.askDeletion.mutationOptions({ onSuccess: useSaved(onClose) }),
    async mutationFn() {
      if (password !== '') await client.session.confirm.mutate({ password })
      return client.organization.askDeletion.mutate({ name })
    },
  })
  return (
    <FormDialog
      title={`Delete ${wanted}?`}
      action="Ask for the deletion"
      busy={ask.isPending}
      disabled={name.trim() !== wanted}
      failure={formProblem(ask.error)}
      onClose={onClose}
      onSubmit={() => ask.mutate({ name })}
    >
      <Notice tone="silent">
        Everything is deleted in {deletionGraceDays} days. Every owner gets a mail, every member sees it on
        each page, and any owner can stop it.
      </Notice>
      <TextField label={`Type its name: ${wanted}`} value={name} onChange={setName} maxLength={80} />
      <TextField
        label="Your password"
        type="password"
        value={password}
        onChange={setPassword}
        maxLength={128}
        hint="Not needed within ten minutes of signing in."
      />
    </FormDialog>
  )
}
