'use client'

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import Link from 'next/link'
import { useRouter } from 'next/navigation'
import { useState } from 'react'
import { Button } from '../../components/button'
import { ConfirmButton } from '../../components/dialog'
import { Instant } from '../../components/instant'
import { Facts, LoadingState, Page, PageHeader, Panel, Skeleton } from '../../components/page'
import { type Column, Table } from '../../components/table'
import { useFailureToast, useToast } from '../../components/toast'
import { useTRPC } from '../../lib/trpc'
import { HistoryPanel } from '../audit/history-panel'
import { ObjectDialog, useSaved } from '../objects/object-dialog'
import { useMay } from '../session/use-may'
import { PageName, QueryError } from '../shell/object-page'
import { LastSignIn, type Member, TotpTag } from './member-columns'
import { RoleChoice, useRoleChoice } from './role-choice'
import { roleText, scopeInput, scopeText } from './role-text'

type Grant = Member['grants'][number]
type RoleHolder = Pick<Member, 'userId' | 'name' | 'revision' | 'grants'>

/** One member: roles to grant and to remove, and who granted and removed them. */
export function MemberPage({ userId }: { userId: string }) {
  const { data: member, error, refetch } = useQuery(useTRPC().member.get.queryOptions({ userId }))
  if (error) return <QueryError noun="member" error={error} onRetry={refetch} />
  if (!member)
    return (
      <LoadingState label="Loading member">
        <Skeleton className="h-64" />
      </LoadingState>
    )
  return (
    <Page>
      <PageName name={member.name} />
      <PageHeader title={member.name} summary={member.email} actions={<RemoveMember member={member} />} />
      <Panel title="Account">
        <Facts
          facts={[
            { label: 'Member since', value: <Instant at={member.joinedAt} full /> },
            { label: 'Last sign-in', value: <LastSignIn at={member.lastSignInAt} /> },
            { label: 'Two-factor authentication', value: <TotpTag {...member} /> },
          ]}
        />
      </Panel>
      <RolesPanel member={member} />
      <HistoryPanel objectId={userId} />
    </Page>
  )
}

/** The roles of a person or of a service account. */
export function RolesPanel({ member }: { member: RoleHolder }) {
  const mayChange = useMay('member.change')
  const [isGiving, setGiving] = useState(false)
  const [taking, setTaking] = useState<Grant | null>(null)
  return (
    <Panel
      title="Roles"
      flush
      aside={
        <>
          <Link href={`/roles?member=${member.userId}`} className="underline underline-offset-2">
            About roles
          </Link>
          {mayChange && (
            <Button small onClick={() => setGiving(true)}>
              Add role
            </Button>
          )}
        </>
      }
    >
      <Table label="Roles" columns={grantColumns(setTaking)} rows={member.grants} rowKey={({ id }) => id} />
      {isGiving && <GiveRoleDialog member={member} onClose={() => setGiving(false)} />}
      {taking && <TakeRoleDialog member={member} grant={taking} onClose={() => setTaking(null)} />}
    </Panel>
  )
}

function grantColumns(onTake: (grant: Grant) => void): Column<Grant>[] {
  return [
    { title: 'Role', cell: ({ role }) => <span className="font-medium text-ink">{roleText(role)}</span> },
    {
      title: 'Scope',
      wide: true,
      cell: ({ scope }) => <span className="whitespace-normal">{scopeText(scope)}</span>,
    },
    { title: 'Granted', from: 'sm', cell: ({ grantedAt }) => <Instant at={grantedAt} /> },
    {
      title: 'Actions',
      align: 'right',
      cell: (grant) =>
        grant.mayTake && (
          <Button
            small
            aria-label={`Remove ${roleText(grant.role)} of ${scopeText(grant.scope)}`}
            onClick={() => onTake(grant)}
          >
            Remove
          </Button>
        ),
    },
  ]
}

/** Nothing without permission; people leave an organization on their account page. */
function RemoveMember({ member: { userId, name, mayRemove } }: { member: Member }) {
  const trpc = useTRPC()
  const queries = useQueryClient()
  const router = useRouter()
  const toast = useToast()
  const remove = useMutation(
    trpc.member.remove.mutationOptions({
      onSuccess: async () => {
        toast({ title: `${name} removed from the organization` })
        router.push('/members')
        await queries.invalidateQueries(trpc.member.list.pathFilter())
      },
      onError: useFailureToast(`Could not remove ${name}`),
    }),
  )
  if (!mayRemove) return null
  return (
    <ConfirmButton
      label="Remove"
      busy={remove.isPending}
      title={`Remove ${name}?`}
      action="Remove member"
      onConfirm={() => remove.mutate({ userId })}
    >
      <p>
        {name} loses all roles with the next request. API keys created by {name} stop working.
      </p>
      <p>The account and its other memberships remain. You can invite this person again.</p>
    </ConfirmButton>
  )
}

interface MemberDialogProps {
  member: RoleHolder
  onClose: () => void
}

function GiveRoleDialog({ member, onClose }: MemberDialogProps) {
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

function TakeRoleDialog({
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
