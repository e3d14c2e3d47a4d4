'use client'

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Button } from '../../components/button'
import { Age, Instant } from '../../components/instant'
import { Panel, Unknown } from '../../components/panel'
import { ErrorState } from '../../components/states'
import { type Column, Table, TableSkeleton } from '../../components/table'
import { Tag } from '../../components/tag'
import { useToast } from '../../components/toast'
import { agentText } from '../../lib/agent-text'
import { readableError } from '../../lib/readable-error'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'

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

/** Where the person is signed in. What is ended here asks for the password at its next request. */
export function SessionsPanel() {
  const { data, error, refetch } = useQuery(useTRPC().session.own.queryOptions())
  const endOthers = useEnding('endOthers')
  return (
    <Panel
      title="Active sessions"
      flush
      aside={
        data &&
        data.length > 1 && (
          <Button className="h-7!" busy={endOthers.isPending} onClick={() => endOthers.mutate()}>
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
      className="h-7!"
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
    onError: (error: unknown) =>
      toast({ title: 'Could not sign out the session', text: readableError(error), tone: 'failed' as const }),
  }
  const end = useMutation(trpc.session.end.mutationOptions(handlers))
  const endOthers = useMutation(trpc.session.endOthers.mutationOptions(handlers))
  return { end, endOthers }[what]
}
