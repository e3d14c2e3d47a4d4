'use client'

import { useQuery } from '@tanstack/react-query'
import { Page, PageHeader } from '../../components/page-header'
import { Panel } from '../../components/panel'
import { ErrorState } from '../../components/states'
import { type Column, Table, TableSkeleton } from '../../components/table'
import { readableError } from '../../lib/readable-error'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'
import { ExplainPanel } from './explain-panel'
import { type Role, roleText } from './role-text'
import { YesOrNo } from './yes-or-no'

type PermissionRow = RouterOutputs['member']['roleTable']['permissions'][number]

/** What each role allows; and of one member, what may be done where, and why. */
export function RolesPage() {
  const mayRead = useMay('member.read')
  return (
    <Page>
      <PageHeader
        title="Roles"
        summary="A role is granted for the organization, a farm, a site or a collection and applies to everything in it."
      />
      {mayRead && <ExplainPanel />}
      <Panel title="Permissions of each role" flush>
        <RoleTable />
      </Panel>
    </Page>
  )
}

function RoleTable() {
  const { data, error, refetch } = useQuery(useTRPC().member.roleTable.queryOptions())
  if (error) return <ErrorState title="Could not load the roles." text={readableError(error)} onRetry={refetch} />
  if (!data) return <TableSkeleton label="Roles" />
  return (
    <Table
      label="Permissions of each role"
      columns={[mayColumn, ...data.roles.map(roleColumn)]}
      rows={data.permissions}
      rowKey={({ permission }) => permission}
    />
  )
}

const mayColumn: Column<PermissionRow> = {
  title: 'Permission',
  wide: true,
  cell: ({ permission, allows, upwards }) => (
    <span className="block whitespace-normal sm:min-w-40">
      <span className="text-ink">{allows}</span>
      {upwards && <span className="text-ink-faint"> · also on parent objects</span>}
      <span className="block font-mono text-2xs text-ink-faint">{permission}</span>
    </span>
  ),
}

function roleColumn(role: Role): Column<PermissionRow> {
  return {
    title: roleText(role),
    narrow: true,
    cell: ({ roles }) => <YesOrNo isYes={roles.includes(role)} />,
  }
}
