'use client'

import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { ConfirmDialog } from '../../components/confirm-dialog'
import { Panel } from '../../components/panel'
import { ErrorState } from '../../components/states'
import { type Column, Table, TableSkeleton } from '../../components/table'
import { Tag } from '../../components/tag'
import { useToast } from '../../components/toast'
import { readableError } from '../../lib/readable-error'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { roleWords } from '../people/role-words'
import { useChooseOrganization } from '../session/use-choose-organization'

type Organization = RouterOutputs['session']['organizations'][number]

/** The organizations that the person belongs to. */
export function MembershipsPanel() {
  const trpc = useTRPC()
  const { data, error, refetch } = useQuery(trpc.session.organizations.queryOptions())
  const currentId = useQuery(trpc.session.me.queryOptions()).data?.organization.id
  return (
    <Panel title="Where you belong" flush>
      {error && (
        <ErrorState title="Your memberships could not be loaded." text={readableError(error)} onRetry={refetch} />
      )}
      {!error && !data && <TableSkeleton label="Organizations" rowCount={1} />}
      {data && <Table label="Organizations" columns={columnsFor(currentId)} rows={data} rowKey={({ id }) => id} />}
    </Panel>
  )
}

function columnsFor(currentId: string | undefined): Column<Organization>[] {
  return [
    {
      title: 'Organization',
      cell: ({ id, name }) => (
        <span className="flex items-center gap-2 max-sm:flex-wrap max-sm:whitespace-normal">
          <span className="font-medium text-ink">{name}</span>
          {id === currentId && <Tag tone="ready">This one</Tag>}
        </span>
      ),
    },
    {
      title: 'As',
      wide: true,
      cell: ({ roles }) => (
        <span className="whitespace-normal">
          {roles.map(({ role, isOfPart }) => roleWords(role) + (isOfPart ? ' of a part' : '')).join(', ')}
        </span>
      ),
    },
    {
      title: 'Actions',
      align: 'right',
      cell: (organization) =>
        organization.id === currentId ? (
          <LeaveButton organization={organization} />
        ) : (
          <SwitchButton organization={organization} />
        ),
    },
  ]
}

function SwitchButton({ organization: { id, name } }: { organization: Organization }) {
  const choose = useChooseOrganization()
  return (
    <Button
      className="h-7!"
      busy={choose.isPending}
      aria-label={`Go to ${name}`}
      onClick={() => choose.mutate({ organizationId: id })}
    >
      Go there
    </Button>
  )
}

function LeaveButton({ organization: { name } }: { organization: Organization }) {
  const trpc = useTRPC()
  const toast = useToast()
  const [isAsked, setAsked] = useState(false)
  const leave = useMutation(
    trpc.member.leave.mutationOptions({
      // A full load: what there is now is another organization's, or a sign-in page.
      onSuccess: () => window.location.assign('/'),
      onError: (error) =>
        toast({ title: `You are still a member of ${name}`, text: readableError(error), tone: 'failed' }),
    }),
  )
  return (
    <>
      <Button className="h-7!" busy={leave.isPending} aria-label={`Leave ${name}`} onClick={() => setAsked(true)}>
        Leave
      </Button>
      <ConfirmDialog
        open={isAsked}
        onOpenChange={setAsked}
        title={`Leave ${name}?`}
        action="Leave it"
        onConfirm={() => leave.mutate()}
      >
        <p>Your roles there end at once, and API keys that you have created. Only an invitation brings you back.</p>
      </ConfirmDialog>
    </>
  )
}
