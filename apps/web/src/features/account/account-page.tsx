'use client'

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useRouter } from 'next/navigation'
import { useState } from 'react'
import { Button } from '../../components/button'
import { TextField } from '../../components/field'
import { Age, Instant } from '../../components/instant'
import { ErrorState, Facts, LoadingState, Page, PageHeader, Panel, Skeleton, Unknown } from '../../components/page'
import { type Column, Table, TableSkeleton } from '../../components/table'
import { Tag } from '../../components/tag'
import { useFailureToast, useToast } from '../../components/toast'
import { agentText } from '../../lib/agent-text'
import { formProblem, type RouterOutputs, readableError, useTRPC } from '../../lib/trpc'
import { askAuth, authProblem } from '../session/ask-auth'
import { type Account, AccountForm, PasswordField } from './account-form'
import { CodePanel } from './code-panel'
import { MembershipsPanel } from './memberships-panel'

/** Everything that belongs to the person and to no organization: name, password, code, sessions, memberships. */
export function AccountPage() {
  const { data: account, error, refetch } = useQuery(useTRPC().session.account.queryOptions())
  return (
    <Page>
      <PageHeader title="Account" summary="Your account is the same in all your organizations." />
      {error && <ErrorState title="Could not load your account." text={readableError(error)} onRetry={refetch} />}
      {!error && !account && (
        <LoadingState label="Loading your account">
          <Skeleton className="h-64" />
        </LoadingState>
      )}
      {account && (
        <>
          <div className="grid items-start gap-5 lg:grid-cols-2">
            <NamePanel account={account} />
            <CodePanel account={account} />
          </div>
          {account.hasPassword && <PasswordPanel />}
          <SessionsPanel />
          <MembershipsPanel />
        </>
      )}
    </Page>
  )
}

const nameLengthMax = 80

function NamePanel({ account }: { account: Account }) {
  const queries = useQueryClient()
  const router = useRouter()
  const toast = useToast()
  const [name, setName] = useState(account.name)
  async function save() {
    const { error } = await askAuth('update-user', { name: name.trim() })
    const problem = authProblem(error, 'Enter a name of up to 80 characters on one line.')
    if (problem) return problem
    toast({ title: 'Name updated' })
    await queries.invalidateQueries()
    // The shell shows it, too.
    router.refresh()
    return null
  }
  return (
    <Panel title="Profile">
      <div className="flex flex-col gap-4">
        <Facts facts={[{ label: 'E-mail', value: account.email }]} />
        <AccountForm action="Save name" disabled={name.trim() === '' || name.trim() === account.name} onSubmit={save}>
          <TextField label="Name" value={name} onChange={setName} maxLength={nameLengthMax} />
        </AccountForm>
      </div>
    </Panel>
  )
}

function PasswordPanel() {
  const trpc = useTRPC()
  const queries = useQueryClient()
  const toast = useToast()
  const rule = useQuery(trpc.session.signIn.queryOptions()).data?.passwordRule
  const [current, setCurrent] = useState('')
  const [next, setNext] = useState('')
  const [endsOthers, setEndsOthers] = useState(true)
  const endOthers = useMutation(trpc.session.endOthers.mutationOptions())

  async function change() {
    const { error } = await askAuth('change-password', { currentPassword: current, newPassword: next })
    const problem = authProblem(error, refusalOf(error, rule))
    if (problem) return problem
    setCurrent('')
    setNext('')
    try {
      if (endsOthers) await endOthers.mutateAsync()
    } catch (failure) {
      return `Your password was changed, but your other sessions are still signed in: ${formProblem(failure)}`
    }
    await queries.invalidateQueries(trpc.session.own.pathFilter())
    toast({ title: 'Password changed' })
    return null
  }

  return (
    <Panel title="Password">
      <AccountForm action="Change password" disabled={current === '' || next === ''} onSubmit={change}>
        <div className="grid gap-4 sm:grid-cols-2">
          <PasswordField
            label="Current password"
            value={current}
            onChange={setCurrent}
            autoComplete="current-password"
          />
          <PasswordField label="New password" value={next} onChange={setNext} autoComplete="new-password" hint={rule} />
        </div>
        <label className="flex items-center gap-2 text-ink text-sm">
          <input type="checkbox" checked={endsOthers} onChange={(event) => setEndsOthers(event.target.checked)} /> Sign
          out of all other sessions
        </label>
      </AccountForm>
    </Panel>
  )
}

/** Which of the two passwords the answer is about. */
function refusalOf(error: { code?: string | undefined } | null, rule: string | undefined): string {
  if (error?.code === 'INVALID_PASSWORD') return 'The current password is incorrect.'
  return `The new password is not accepted. ${rule ?? ''}`.trim()
}

type Session = RouterOutputs['session']['own'][number]

const columns: Column<Session>[] = [
  {
    title: 'Device',
    wide: true,
    cell: ({ agent, isCurrent }) => (
      <span className="flex flex-wrap items-center gap-2 whitespace-normal">
        <span className="font-medium text-ink" title={agent ?? undefined}>
          {agentText(agent)}
        </span>
        {isCurrent && <Tag tone="ready">Current</Tag>}
      </span>
    ),
  },
  { title: 'IP address', from: 'sm', cell: ({ address }) => address || <Unknown /> },
  { title: 'Signed in', from: 'md', cell: ({ signedInAt }) => <Instant at={signedInAt} /> },
  { title: 'Last seen', from: 'sm', cell: ({ usedAt }) => <Age at={usedAt} /> },
  { title: 'Actions', align: 'right', cell: (session) => <EndButton session={session} /> },
]

/** The person's sessions. An ended session asks for the password at its next request. */
function SessionsPanel() {
  const { data, error, refetch } = useQuery(useTRPC().session.own.queryOptions())
  const endOthers = useEnding('endOthers')
  return (
    <Panel
      title="Active sessions"
      flush
      aside={
        data &&
        data.length > 1 && (
          <Button small busy={endOthers.isPending} onClick={() => endOthers.mutate()}>
            Sign out of all other sessions
          </Button>
        )
      }
    >
      {error && <ErrorState title="Could not load your sessions." text={readableError(error)} onRetry={refetch} />}
      {!error && !data && <TableSkeleton label="Sessions" rowCount={2} />}
      {data && <Table label="Sessions" columns={columns} rows={data} rowKey={({ id }) => id} />}
    </Panel>
  )
}

function EndButton({ session: { id, isCurrent, agent } }: { session: Session }) {
  const end = useEnding('end')
  if (isCurrent) return null
  return (
    <Button
      small
      busy={end.isPending}
      aria-label={`Sign out ${agentText(agent)}`}
      onClick={() => end.mutate({ sessionId: id })}
    >
      Sign out
    </Button>
  )
}

function useEnding<What extends 'end' | 'endOthers'>(what: What) {
  const trpc = useTRPC()
  const queries = useQueryClient()
  const toast = useToast()
  const handlers = {
    onSuccess: async () => {
      toast({ title: what === 'end' ? 'Session signed out' : 'All other sessions signed out' })
      await queries.invalidateQueries(trpc.session.own.pathFilter())
    },
    onError: useFailureToast('Could not sign out the session'),
  }
  const end = useMutation(trpc.session.end.mutationOptions(handlers))
  const endOthers = useMutation(trpc.session.endOthers.mutationOptions(handlers))
  return { end, endOthers }[what]
}
