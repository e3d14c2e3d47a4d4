'use client'

import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { ConfirmDialog } from '../../components/confirm-dialog'
import { Instant } from '../../components/instant'
import { PagedList } from '../../components/paged-list'
import { Panel } from '../../components/panel'
import { EmptyState } from '../../components/states'
import type { Column } from '../../components/table'
import { Tag } from '../../components/tag'
import { useToast } from '../../components/toast'
import { readableError } from '../../lib/readable-error'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { roleText, scopeText } from './role-text'

type Invitation = RouterOutputs['invitation']['list']['items'][number]

const columns: Column<Invitation>[] = [
  {
    title: 'E-mail',
    cell: ({ email, role, scope }) => (
      <span className="flex max-w-64 flex-col max-sm:max-w-40">
        <span className="truncate" title={email}>
          {email}
        </span>
        <span className="whitespace-normal text-ink-faint text-xs sm:hidden">
          {roleText(role)} of {scopeText(scope)}
        </span>
      </span>
    ),
  },
  {
    title: 'Role',
    wide: true,
    from: 'sm',
    cell: ({ role, scope }) => `${roleText(role)} of ${scopeText(scope)}`,
  },
  { title: 'Status', from: 'md', cell: (invitation) => <InvitationState {...invitation} /> },
  { title: 'Invited by', from: 'lg', cell: ({ invitedByName }) => invitedByName },
  { title: 'Expires', from: 'sm', cell: ({ expiresAt }) => <Instant at={expiresAt} /> },
  { title: 'Actions', align: 'right', cell: (invitation) => <InvitationActions invitation={invitation} /> },
]

/** Invitations that nobody has accepted yet. */
export function InvitationsPanel() {
  const query = useInfiniteQuery(
    useTRPC().invitation.list.infiniteQueryOptions({}, { getNextPageParam: (page) => page.nextCursor }),
  )
  return (
    <Panel title="Pending invitations" flush>
      <PagedList
        label="Invitations"
        query={query}
        columns={columns}
        rowKey={({ id }) => id}
        empty={
          <EmptyState title="No pending invitations." text="Invited people appear here until they use their link." />
        }
      />
    </Panel>
  )
}

function InvitationState({ state, sentAt }: Invitation) {
  if (state === 'expired') return <Tag tone="silent">Expired</Tag>
  return sentAt ? (
    <Tag tone="ready" title="The mail server accepted the invitation.">
      Sent
    </Tag>
  ) : (
    <Tag title="No mail server accepted this invitation. Copy the link from the API’s log.">
      E-mail not sent (copy link)
    </Tag>
  )
}

function InvitationActions({ invitation }: { invitation: Invitation }) {
  const trpc = useTRPC()
  const queries = useQueryClient()
  const toast = useToast()
  const [isRevoking, setRevoking] = useState(false)
  const handlers = (done: string) => ({
    onSuccess: async () => {
      toast({ title: done })
      await queries.invalidateQueries(trpc.invitation.list.pathFilter())
    },
    onError: (error: unknown) =>
      toast({ title: 'Could not update the invitation', text: readableError(error), tone: 'failed' as const }),
  })
  const { id: invitationId, email } = invitation
  const resend = useMutation(
    trpc.invitation.resend.mutationOptions(handlers(`Invitation sent to ${email} with a new link`)),
  )
  const revoke = useMutation(trpc.invitation.revoke.mutationOptions(handlers(`Invitation for ${email} revoked`)))
  if (!invitation.mayChange) return null
  return (
    <span className="inline-flex gap-2 max-sm:flex-col">
      <Button
        className="h-7!"
        busy={resend.isPending}
        aria-label={`Resend the invitation to ${email}`}
        onClick={() => resend.mutate({ invitationId })}
      >
        Resend
      </Button>
      <Button
        className="h-7!"
        busy={revoke.isPending}
        aria-label={`Revoke the invitation for ${email}`}
        onClick={() => setRevoking(true)}
      >
        Revoke
      </Button>
      <ConfirmDialog
        open={isRevoking}
        onOpenChange={setRevoking}
        title={`Revoke the invitation for ${email}?`}
        action="Revoke invitation"
        onConfirm={() => revoke.mutate({ invitationId })}
      >
        <p>The link in the e-mail stops working. You can invite this address again.</p>
      </ConfirmDialog>
    </span>
  )
}
