'use client'

import { keepPreviousData, useInfiniteQuery, useMutation } from '@tanstack/react-query'
import Link from 'next/link'
import { useRouter } from 'next/navigation'
import { useState } from 'react'
import { z } from 'zod'
import { Button } from '../../components/button'
import { FormDialog } from '../../components/dialog'
import { TextField } from '../../components/field'
import { FilterBar, SearchFilter } from '../../components/filter'
import { Age } from '../../components/instant'
import { EmptyState, Page, PageHeader } from '../../components/page'
import { PagedList } from '../../components/paged-list'
import type { Column } from '../../components/table'
import { Tag } from '../../components/tag'
import { formProblem, type Listed, nextPage, useRefresh, useTRPC } from '../../lib/trpc'
import { useUrlFilters } from '../../lib/use-url-filters'
import { useMay } from '../session/use-may'
import { RoleList } from './member-columns'
import { RoleChoice, useRoleChoice } from './role-choice'
import { scopeInput } from './role-text'

export type ServiceAccount = Listed<'serviceAccount'>

const nameLengthMax = 64
const filterShape = { search: z.string().max(nameLengthMax).optional() }

const columns: Column<ServiceAccount>[] = [
  {
    title: 'Name',
    cell: ({ id, name }) => (
      <Link href={`/service-accounts/${id}`} className="font-medium text-ink hover:underline">
        {name}
      </Link>
    ),
  },
  { title: 'State', cell: ({ disabledAt }) => <ServiceAccountState disabledAt={disabledAt} /> },
  { title: 'Roles', wide: true, from: 'sm', cell: ({ grants }) => <RoleList grants={grants} /> },
  { title: 'API keys', from: 'md', cell: ({ keys }) => keys?.count ?? <span className="text-ink-faint">–</span> },
  {
    title: 'Last used',
    from: 'sm',
    cell: ({ keys }) =>
      keys?.lastUsedAt ? <Age at={keys.lastUsedAt} /> : <span className="text-ink-faint">never</span>,
  },
]

export function ServiceAccountState({ disabledAt }: Pick<ServiceAccount, 'disabledAt'>) {
  return disabledAt ? (
    <Tag tone="silent" title="All API keys of this account are refused.">
      Disabled
    </Tag>
  ) : (
    <Tag tone="ready" title="The API keys of this account can be used.">
      Enabled
    </Tag>
  )
}

/** Accounts of programs, beside the members. */
export function ServiceAccountsPage() {
  const trpc = useTRPC()
  const mayChange = useMay('member.change')
  const [isCreating, setCreating] = useState(false)
  const { filters, bind, clearFilters, filtered } = useUrlFilters(filterShape)
  const query = useInfiniteQuery(
    trpc.serviceAccount.list.infiniteQueryOptions(filters.search ? { search: filters.search } : {}, {
      ...nextPage,
      placeholderData: keepPreviousData,
    }),
  )
  return (
    <Page>
      <PageHeader
        title="Service accounts"
        summary="Accounts of programs. They keep their API keys when people leave, and cannot sign in."
        actions={
          mayChange && (
            <Button look="primary" onClick={() => setCreating(true)}>
              Create service account
            </Button>
          )
        }
      />
      <FilterBar onClear={filtered ? clearFilters : undefined}>
        <SearchFilter label="Search name" {...bind('search')} />
      </FilterBar>
      <div className="rounded-lg border border-line bg-surface">
        <PagedList
          label="Service accounts"
          query={query}
          columns={columns}
          rowKey={({ id }) => id}
          empty={
            filtered ? (
              <EmptyState title="No service accounts match this search." text="Search for part of the name." />
            ) : (
              <EmptyState
                title="No service accounts yet."
                text="Create one for each program that uses the API, such as a build server or a monitoring system."
              />
            )
          }
        />
      </div>
      {isCreating && <CreateDialog onClose={() => setCreating(false)} />}
    </Page>
  )
}

function CreateDialog({ onClose }: { onClose: () => void }) {
  const trpc = useTRPC()
  const router = useRouter()
  const refresh = useRefresh(trpc.serviceAccount.pathFilter())
  const [name, setName] = useState('')
  const choice = useRoleChoice({ withOwner: false })
  const create = useMutation(
    trpc.serviceAccount.create.mutationOptions({
      onSuccess: async ({ id }) => {
        router.push(`/service-accounts/${id}`)
        await refresh()
      },
    }),
  )
  const { chosen } = choice
  return (
    <FormDialog
      title="Create service account"
      action="Create service account"
      busy={create.isPending}
      disabled={name.trim() === '' || chosen === null}
      failure={formProblem(create.error)}
      onClose={onClose}
      onSubmit={() => chosen && create.mutate({ name, role: chosen.role, scope: scopeInput(chosen.scope) })}
    >
      <TextField
        label="Name"
        value={name}
        onChange={setName}
        maxLength={nameLengthMax}
        hint="The program that uses the account."
      />
      <RoleChoice choice={choice} />
    </FormDialog>
  )
}
