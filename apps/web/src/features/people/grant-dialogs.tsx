'use client'

import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { useTRPC } from '../../lib/trpc'
import { ObjectDialog, useSaved } from '../objects/object-dialog'
import type { Member } from './member-columns'
import { RoleChoice, useRoleChoice } from './role-choice'
import { roleText, scopeInput, scopeText } from './role-text'

interface MemberDialogProps {
  member: Member
  onClose: () => void
}

export function GiveRoleDialog({ member, onClose }: MemberDialogProps) {
  const [seen] = useState(member)
  const choice = useRoleChoice()
  const grant = useMutation(useTRPC().member.grant.mutationOptions({ onSuccess: useSaved(onClose) }))
  const { chosen } = choice
  return (
    <ObjectDialog
      title={`Add a role for ${seen.name}`}
      action="Add role"
      saving={grant}
      disabled={chosen === null}
      onSave={(revision = seen.revision) =>
        chosen && grant.mutate({ userId: seen.userId, role: chosen.role, scope: scopeInput(chosen.scope), revision })
      }
      onClose={onClose}
    >
      <RoleChoice choice={choice} />
    </ObjectDialog>
  )
}

export function TakeRoleDialog({
  member,
  grant: { id: grantId, role, scope },
  onClose,
}: MemberDialogProps & { grant: Member['grants'][number] }) {
  const [seen] = useState(member)
  const take = useMutation(useTRPC().member.take.mutationOptions({ onSuccess: useSaved(onClose) }))
  return (
    <ObjectDialog
      title={`Remove a role from ${seen.name}`}
      action="Remove role"
      saving={take}
      onSave={(revision = seen.revision) => take.mutate({ userId: seen.userId, grantId, revision })}
      onClose={onClose}
    >
      <p className="text-ink text-sm">
        {seen.name} loses the role {roleText(role)} of {scopeText(scope)} with the next request.
      </p>
    </ObjectDialog>
  )
}
