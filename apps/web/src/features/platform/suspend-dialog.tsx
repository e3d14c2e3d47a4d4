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
      onError: (error) =>
        toast({ title: 'Could not update the organization.', text: readableError(error), tone: 'failed' }),
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
