'use client'

import { keepPreviousData, useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query'
import Link from 'next/link'
import { useState } from 'react'
import { z } from 'zod'
import { Button } from '../../components/button'
import { ConfirmButton, FormDialog } from '../../components/dialog'
import { TextField } from '../../components/field'
import { FilterBar, SearchFilter } from '../../components/filter'
import { Instant } from '../../components/instant'
import { EmptyState, Page, PageHeader, Panel } from '../../components/page'
import { PagedList } from '../../components/paged-list'
import type { Column } from '../../components/table'
import { Tag } from '../../components/tag'
import { useFailureToast, useToast } from '../../components/toast'
import { formProblem, type Listed, nextPage, useTRPC } from '../../lib/trpc'
import { useUrlFilters } from '../../lib/use-url-filters'
import { useSaved } from '../objects/object-dialog'
import { useMay } from '../session/use-may'
import { memberColumns } from './member-columns'
import { RoleChoice, useRoleChoice } from './role-choice'
import { roleText, scopeInput, scopeText } from './role-text'

const filterShape = { search: z.string().max(64).optional() }

/** Members of the organization, and pending invitations. */
export function MembersPage() {
  const trpc = useTRPC()
  const mayChange = useMay('member.change')
  const [isInviting, setInviting] = useState(false)
  const { filters, bind, clearFilters, filtered } = useUrlFilters(filterShape)
  const query = useInfiniteQuery(
    trpc.member.list.infiniteQueryOptions(filters.search ? { search: filters.search } : {}, {
      ...nextPage,
      placeholderData: keepPreviousData,
    }),
  )
  return (
    <Page>
      <PageHeader
        title="Members"
        summary={
          <>
            People with access.{' '}
            <Link href="/roles" className="underline underline-offset-4">
              About roles
            </Link>
          </>
        }
        actions={
          mayChange && (
            <Button look="primary" onClick={() => setInviting(true)}>
              Invite member
            </Button>
          )
        }
      />
      <FilterBar onClear={filtered ? clearFilters : undefined}>
        <SearchFilter label="Search name or e-mail" {...bind('search')} />
      </FilterBar>
      <div className="rounded-lg border border-line bg-surface">
        <PagedList
          label="Members"
          query={query}
          columns={memberColumns}
          rowKey={({ userId }) => userId}
          empty={
            <EmptyState title="No members match this search." text="Search for part of the name or e-mail address." />
          }
        />
      </div>
      <InvitationsPanel />
      {isInviting && <InviteDialog onClose={() => setInviting(false)} />}
    </Page>
  )
}

const emailLengthMax = 254

/** An address, a role and where it holds. */
function InviteDialog({ onClose }: { onClose: () => void }) {
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

type Invitation = Listed<'invitation'>

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
function InvitationsPanel() {
  const query = useInfiniteQuery(useTRPC().invitation.list.infiniteQueryOptions({}, nextPage))
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
  const onError = useFailureToast('Could not update the invitation')
  const handlers = (done: string) => ({
    onSuccess: async () => {
      toast({ title: done })
      await queries.invalidateQueries(trpc.invitation.list.pathFilter())
    },
    onError,
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
        small
        busy={resend.isPending}
        aria-label={`Resend the invitation to ${email}`}
        onClick={() => resend.mutate({ invitationId })}
      >
        Resend
      </Button>
      <ConfirmButton
        label="Revoke"
        className="h-7!"
        busy={revoke.isPending}
        aria-label={`Revoke the invitation for ${email}`}
        title={`Revoke the invitation for ${email}?`}
        action="Revoke invitation"
        onConfirm={() => revoke.mutate({ invitationId })}
      >
        <p>The link in the e-mail stops working. You can invite this address again.</p>
      </ConfirmButton>
    </span>
  )
}
