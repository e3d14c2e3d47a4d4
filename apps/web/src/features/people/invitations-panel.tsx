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
import { roleWords, scopeWords } from './role-words'

type Invitation = RouterOutputs['invitation']['list']['items'][number]

const columns: Column<Invitation>[] = [
  {
    title: 'Address',
    cell: ({ email, role, scope }) => (
      <span className="flex max-w-64 flex-col max-sm:max-w-40">
        <span className="truncate" title={email}>
          {email}
        </span>
        <span className="whitespace-normal text-ink-faint text-xs sm:hidden">
          {roleWords(role)} of {scopeWords(scope)}
        </span>
      </span>
    ),
  },
  {
    title: 'As',
    wide: true,
    from: 'sm',
    cell: ({ role, scope }) => `${roleWords(role)} of ${scopeWords(scope)}`,
  },
  { title: 'State', from: 'md', cell: (invitation) => <InvitationState {...invitation} /> },
  { title: 'By', from: 'lg', cell: ({ invitedByName }) => invitedByName },
  { title: 'Valid until', from: 'sm', cell: ({ expiresAt }) => <Instant at={expiresAt} /> },
  { title: 'Actions', align: 'right', cell: (invitation) => <InvitationActions invitation={invitation} /> },
]

/** Invitations that nobody has accepted yet. */
export function InvitationsPanel() {
  const query = useInfiniteQuery(
    useTRPC().invitation.list.infiniteQueryOptions({}, { getNextPageParam: (page) => page.nextCursor }),
  )
  return (
    <Panel title="Invitations without an answer" flush>
      <PagedList
        label="Invitations"
        query={query}
        columns={columns}
        rowKey={({ id }) => id}
        empty={<EmptyState title="No invitation is open." text="Who is invited appears here until the link is used." />}
      />
    </Panel>
  )
}

function InvitationState({ state, sentAt }: Invitation) {
  if (state === 'expired') return <Tag tone="silent">Expired</Tag>
  return sentAt ? (
    <Tag tone="ready" title="A mail server has taken it.">
      Sent
    </Tag>
  ) : (
    <Tag title="No mail server has taken it: the link stands in the API’s log.">In the log</Tag>
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
      toast({ title: 'Nothing was done', text: readableError(error), tone: 'failed' as const }),
  })
  const { id: invitationId, email } = invitation
  const resend = useMutation(
    trpc.invitation.resend.mutationOptions(handlers(`Sent to ${email} again, with a new link`)),
  )
  const revoke = useMutation(
    trpc.invitation.revoke.mutationOptions(handlers(`The invitation of ${email} is withdrawn`)),
  )
  if (!invitation.mayChange) return null
  return (
    <span className="inline-flex gap-2 max-sm:flex-col">
      <Button
        className="h-7!"
        busy={resend.isPending}
        aria-label={`Send again to ${email}`}
        onClick={() => resend.mutate({ invitationId })}
      >
        Send again
      </Button>
      <Button
        className="h-7!"
        busy={revoke.isPending}
        aria-label={`Withdraw the invitation of ${email}`}
        onClick={() => setRevoking(true)}
      >
        Withdraw
      </Button>
      <ConfirmDialog
        open={isRevoking}
        onOpenChange={setRevoking}
        title={`Withdraw the invitation of ${email}?`}
        action="Withdraw it"
        onConfirm={() => revoke.mutate({ invitationId })}
      >
        <p>The link in the mail opens nothing any more. The address can be invited anew.</p>
      </ConfirmDialog>
    </span>
  )
}
