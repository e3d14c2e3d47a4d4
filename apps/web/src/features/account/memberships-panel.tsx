'use client'

import { useMutation, useQuery } from '@tanstack/react-query'
import { Button } from '../../components/button'
import { ConfirmButton } from '../../components/dialog'
import { ErrorState, Panel } from '../../components/page'
import { type Column, Table, TableSkeleton } from '../../components/table'
import { Tag } from '../../components/tag'
import { useFailureToast } from '../../components/toast'
import { type RouterOutputs, readableError, useTRPC } from '../../lib/trpc'
import { roleText } from '../people/role-text'
import { useChooseOrganization } from '../session/use-choose-organization'

type Organization = RouterOutputs['session']['organizations'][number]

/** The organizations that the person belongs to. */
export function MembershipsPanel() {
  const trpc = useTRPC()
  const { data, error, refetch } = useQuery(trpc.session.organizations.queryOptions())
  const currentId = useQuery(trpc.session.me.queryOptions()).data?.organization.id
  return (
    <Panel title="Organizations" flush>
      {error && <ErrorState title="Could not load your organizations." text={readableError(error)} onRetry={refetch} />}
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
          {id === currentId && <Tag tone="ready">Current</Tag>}
        </span>
      ),
    },
    {
      title: 'Role',
      wide: true,
      cell: ({ roles }) => (
        <span className="whitespace-normal">
          {roles.map(({ role, isOfPart }) => roleText(role) + (isOfPart ? ' in part of it' : '')).join(', ')}
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
      small
      busy={choose.isPending}
      aria-label={`Switch to ${name}`}
      onClick={() => choose.mutate({ organizationId: id })}
    >
      Switch
    </Button>
  )
}

function LeaveButton({ organization: { name } }: { organization: Organization }) {
  const trpc = useTRPC()
  const leave = useMutation(
    trpc.member.leave.mutationOptions({
      // A full load: what there is now is another organization's, or a sign-in page.
      onSuccess: () => window.location.assign('/'),
      onError: useFailureToast(`Could not leave ${name}`),
    }),
  )
  return (
    <ConfirmButton
      label="Leave"
      className="h-7!"
      busy={leave.isPending}
      aria-label={`Leave ${name}`}
      title={`Leave ${name}?`}
      action="Leave organization"
      onConfirm={() => leave.mutate()}
    >
      <p>
        You lose your roles there at once, and the API keys you created there stop working. You can only rejoin by
        invitation.
      </p>
    </ConfirmButton>
  )
}
