'use client'

import { useQuery } from '@tanstack/react-query'
import Link from 'next/link'
import { useState } from 'react'
import { Button } from '../../components/button'
import { Instant } from '../../components/instant'
import { Page, PageHeader } from '../../components/page-header'
import { Facts, Panel } from '../../components/panel'
import { LoadingState, Skeleton } from '../../components/states'
import { type Column, Table } from '../../components/table'
import { useTRPC } from '../../lib/trpc'
import { HistoryPanel } from '../audit/history-panel'
import { useMay } from '../session/use-may'
import { PageName } from '../shell/breadcrumbs'
import { QueryError } from '../shell/query-error'
import { GiveRoleDialog, TakeRoleDialog } from './grant-dialogs'
import { LastSignIn, type Member, TotpTag } from './member-columns'
import { RemoveMember } from './remove-member'
import { roleText, scopeText } from './role-text'

type Grant = Member['grants'][number]

/** One member: roles to give and to take, and who gave and took them. */
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

function RolesPanel({ member }: { member: Member }) {
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
            <Button className="h-7!" onClick={() => setGiving(true)}>
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
            className="h-7!"
            aria-label={`Remove ${roleText(grant.role)} of ${scopeText(grant.scope)}`}
            onClick={() => onTake(grant)}
          >
            Remove
          </Button>
        ),
    },
  ]
}
