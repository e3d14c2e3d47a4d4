'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { ConfirmDialog } from '../../components/confirm-dialog'
import { useToast } from '../../components/toast'
import { readableError } from '../../lib/readable-error'
import { useTRPC } from '../../lib/trpc'
import type { PlatformOrganization } from './organization-columns'

interface SuspendDialogProps {
  /** Null while nobody has asked. */
  organization: PlatformOrganization | null
  onClose: () => void
}

export function SuspendDialog({ organization, onClose }: SuspendDialogProps) {
  const queries = useQueryClient()
  const toast = useToast()
  const change = useMutation(
    useTRPC().platform.setSuspended.mutationOptions({
      onSuccess: () => queries.invalidateQueries(),
      onError: (error) => toast({ title: 'Nothing was changed.', text: readableError(error), tone: 'failed' }),
    }),
  )
  const isSuspended = Boolean(organization?.suspendedAt)
  const name = organization?.name ?? ''
  return (
    <ConfirmDialog
      open={organization !== null}
      onOpenChange={(open) => !open && onClose()}
      title={isSuspended ? `Release ${name}?` : `Suspend ${name}?`}
      action={isSuspended ? 'Release it' : 'Suspend it'}
      onConfirm={() => organization && change.mutate({ organizationId: organization.id, suspended: !isSuspended })}
    >
      <p>
        {isSuspended
          ? 'Its people can change things again.'
          : 'Its people can read, and change nothing; machines boot on. It is said on each of their pages.'}
      </p>
    </ConfirmDialog>
  )
}
