'use client'

import { useQuery } from '@tanstack/react-query'
import { z } from 'zod'
import { SelectField } from '../../components/field'
import { ObjectPicker } from '../../components/object-picker'
import { EmptyState, ErrorState, Page, PageHeader, Panel } from '../../components/page'
import { type Column, Table, TableSkeleton } from '../../components/table'
import { inSentence } from '../../lib/in-sentence'
import { type RouterInputs, type RouterOutputs, readableError, useTRPC } from '../../lib/trpc'
import { type Picker, usePicker } from '../../lib/use-picker'
import { useUrlFilters } from '../../lib/use-url-filters'
import { useMay } from '../session/use-may'
import { YesOrNo } from './role-choice'
import { type Role, roleText } from './role-text'

type PermissionRow = RouterOutputs['member']['roleTable']['permissions'][number]

/** Explains the permissions of each role and, for one member, which hold where, and why. */
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

type Explained = RouterOutputs['member']['explain']['permissions'][number]

/** For one member at one place: each permission, yes or no, and by which role. */
function ExplainPanel() {
  const { filters, setFilter } = useUrlFilters(explainFilterShape)
  const kind = placeKinds.find(({ value }) => value === filters.kind)
  const isWhole = kind === undefined
  const { member, object } = filters
  return (
    <Panel title="Check access" flush>
      <div className="grid gap-3 border-line border-b p-4 sm:grid-cols-3">
        <ObjectPicker
          label="Member"
          picker={usePicker('member', {})}
          value={member ?? ''}
          first={[selectFirst]}
          chosen={member ? { value: member, label: 'Selected member' } : null}
          labelOf={({ name, email }) => `${name}, ${email}`}
          onChange={(id) => setFilter('member', id)}
        />
        <SelectField
          label="Scope"
          value={kind?.value ?? ''}
          options={[
            { value: '', label: 'Whole organization' },
            ...placeKinds.map(({ value, label }) => ({ value, label })),
          ]}
          onChange={(value) => {
            setFilter('object', '')
            setFilter('kind', value)
          }}
        />
        {kind && <PlacePicker key={kind.value} kind={kind} value={object} onChange={(id) => setFilter('object', id)} />}
      </div>
      {member && (isWhole || object) ? (
        <Explanation input={{ userId: member, ...(kind && object ? { [kind.value]: object } : {}) }} />
      ) : (
        <EmptyState
          title={member ? 'Select an object.' : 'Select a member.'}
          text="Shows each permission and the role that grants it, or what is missing."
        />
      )}
    </Panel>
  )
}

const selectFirst = { value: '', label: 'Select …' }

interface PlacePickerProps {
  kind: PlaceKind
  value: string | undefined
  onChange: (id: string) => void
}

function PlacePicker({ kind: { label, noun }, value = '', onChange }: PlacePickerProps) {
  const picker: Picker<{ name: string }> = usePicker(noun, {})
  return (
    <ObjectPicker
      label={label}
      picker={picker}
      value={value}
      first={[selectFirst]}
      chosen={value ? { value, label: `Selected ${inSentence(label)}` } : null}
      onChange={onChange}
    />
  )
}

function Explanation({ input }: { input: RouterInputs['member']['explain'] }) {
  const { data, error, refetch } = useQuery(useTRPC().member.explain.queryOptions(input))
  if (error) return <ErrorState title="Could not check access." text={readableError(error)} onRetry={refetch} />
  if (!data) return <TableSkeleton label="Permissions" />
  const { memberName, placeName, permissions } = data
  const allowedCount = permissions.filter(({ allowed }) => allowed).length
  return (
    <>
      <p role="status" className="border-line border-b px-4 py-3 text-ink text-sm">
        {memberName} has {allowedCount} of {permissions.length} permissions in {placeName}.
      </p>
      <Table
        label={`Permissions of ${memberName}`}
        columns={explainColumns}
        rows={permissions}
        rowKey={({ permission }) => permission}
      />
    </>
  )
}

const explainColumns: Column<Explained>[] = [
  {
    title: 'Permission',
    cell: ({ permission, allows }) => (
      <span className="block whitespace-normal sm:min-w-36">
        <span className="text-ink">{allows}</span>
        <span className="block font-mono text-2xs text-ink-faint">{permission}</span>
      </span>
    ),
  },
  { title: 'Allowed', narrow: true, cell: ({ allowed }) => <YesOrNo isYes={allowed} /> },
  {
    title: 'Reason',
    wide: true,
    cell: ({ because }) => (
      <span className="block min-w-28 whitespace-normal text-ink-soft sm:min-w-40">{because}</span>
    ),
  },
]

interface PlaceKind {
  /** The name of its id in the question. */
  value: Exclude<keyof RouterInputs['member']['explain'], 'userId'>
  label: string
  noun: 'farm' | 'site' | 'collection' | 'device' | 'edge' | 'vdisk' | 'store' | 'bootMenu' | 'schedule'
}

/** Objects for which an explanation can be requested, beside the whole organization. */
const placeKinds: PlaceKind[] = [
  { value: 'farmId', label: 'Farm', noun: 'farm' },
  { value: 'siteId', label: 'Site', noun: 'site' },
  { value: 'collectionId', label: 'Collection', noun: 'collection' },
  { value: 'deviceId', label: 'Device', noun: 'device' },
  { value: 'edgeId', label: 'Edge', noun: 'edge' },
  { value: 'vdiskId', label: 'vDisk', noun: 'vdisk' },
  { value: 'storeId', label: 'Store', noun: 'store' },
  { value: 'menuId', label: 'Boot menu', noun: 'bootMenu' },
  { value: 'scheduleId', label: 'Schedule', noun: 'schedule' },
]

const explainFilterShape = {
  member: z.uuid().optional(),
  kind: z.string().max(16).optional(),
  object: z.uuid().optional(),
}
