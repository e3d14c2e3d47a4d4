'use client'

import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import Link from 'next/link'
import { useState } from 'react'
import { z } from 'zod'
import { Button } from '../../components/button'
import { FilterBar, SearchFilter } from '../../components/filter'
import { Page, PageHeader } from '../../components/page-header'
import { PagedList } from '../../components/paged-list'
import { EmptyState } from '../../components/states'
import { useTRPC } from '../../lib/trpc'
import { useUrlFilters } from '../../lib/use-url-filters'
import { useMay } from '../session/use-may'
import { InvitationsPanel } from './invitations-panel'
import { InviteDialog } from './invite-dialog'
import { memberColumns } from './member-columns'

const filterShape = { search: z.string().max(64).optional() }

/** Who belongs to the organization, and who is invited. */
export function MembersPage() {
  const trpc = useTRPC()
  const mayChange = useMay('member.change')
  const [isInviting, setInviting] = useState(false)
  const { filters, bind, clearFilters, filtered } = useUrlFilters(filterShape)
  const query = useInfiniteQuery(
    trpc.member.list.infiniteQueryOptions(filters.search ? { search: filters.search } : {}, {
      getNextPageParam: (page) => page.nextCursor,
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
