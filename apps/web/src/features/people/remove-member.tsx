'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useRouter } from 'next/navigation'
import { useState } from 'react'
import { Button } from '../../components/button'
import { ConfirmDialog } from '../../components/confirm-dialog'
import { useToast } from '../../components/toast'
import { readableError } from '../../lib/readable-error'
import { useTRPC } from '../../lib/trpc'
import type { Member } from './member-columns'

/** Nothing for those who may not; whoever ends the own membership does so on the account page. */
export function RemoveMember({ member: { userId, name, mayRemove } }: { member: Member }) {
  const trpc = useTRPC()
  const queries = useQueryClient()
  const router = useRouter()
  const toast = useToast()
  const [isAsked, setAsked] = useState(false)
  const remove = useMutation(
    trpc.member.remove.mutationOptions({
      onSuccess: async () => {
        toast({ title: `${name} removed from the organization` })
        router.push('/members')
        await queries.invalidateQueries(trpc.member.list.pathFilter())
      },
      onError: (error) => toast({ title: `Could not remove ${name}`, text: readableError(error), tone: 'failed' }),
    }),
  )
  if (!mayRemove) return null
  return (
    <>
      <Button busy={remove.isPending} onClick={() => setAsked(true)}>
        Remove
      </Button>
      <ConfirmDialog
        open={isAsked}
        onOpenChange={setAsked}
        title={`Remove ${name}?`}
        action="Remove member"
        onConfirm={() => remove.mutate({ userId })}
      >
        <p>
          {name} loses all roles with the next request. API keys created by {name} stop working.
        </p>
        <p>The account and its other memberships remain. You can invite this person again.</p>
      </ConfirmDialog>
    </>
  )
}
