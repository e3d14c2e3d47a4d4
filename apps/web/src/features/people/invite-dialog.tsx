'use client'

import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { FormDialog } from '../../components/dialog'
import { TextField } from '../../components/field'
import { useToast } from '../../components/toast'
import { formProblem } from '../../lib/readable-error'
import { useTRPC } from '../../lib/trpc'
import { useSaved } from '../objects/object-dialog'
import { RoleChoice, useRoleChoice } from './role-choice'
import { scopeInput } from './role-text'

const emailLengthMax = 254

/** An address, a role and where it holds. */
export function InviteDialog({ onClose }: { onClose: () => void }) {
  const trpc = useTRPC()
  const toast = useToast()
  const [email, setEmail] = useState('')
  const choice = useRoleChoice()
  const saved = useSaved(onClose)
  const invite = useMutation(
    trpc.invitation.create.mutationOptions({
      onSuccess: ({ email: address }) => {
        toast({ title: `Invitation sent to ${address}`, text: 'The link in the mail is valid for 7 days.' })
        saved()
      },
    }),
  )
  const { chosen } = choice
  return (
    <FormDialog
      title="Invite member"
      action="Send invitation"
      busy={invite.isPending}
      disabled={email.trim() === '' || chosen === null}
      failure={formProblem(invite.error)}
      onClose={onClose}
      onSubmit={() => chosen && invite.mutate({ email, role: chosen.role, scope: scopeInput(chosen.scope) })}
    >
      <TextField label="E-mail" value={email} onChange={setEmail} maxLength={emailLengthMax} />
      <RoleChoice choice={choice} />
    </FormDialog>
  )
}
