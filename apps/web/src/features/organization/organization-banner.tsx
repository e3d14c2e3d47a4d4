'use client'

import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Instant } from '../../components/instant'
import { PageLink } from '../../components/page-link'
import { useTRPC } from '../../lib/trpc'

/** On every page, while something holds for the whole organization that everybody should know. */
export function OrganizationBanner() {
  const { data } = useQuery(useTRPC().organization.get.queryOptions({}))
  if (!data) return null
  return (
    <>
      {data.suspendedAt && (
        <Banner>
          This organization is suspended and read-only. Devices still boot.
          {data.contact && ` Contact ${data.contact}.`}
        </Banner>
      )}
      {data.deleteAfter && (
        <Banner>
          This organization will be deleted after <Instant at={data.deleteAfter} full />.{' '}
          <PageLink href="/organization" className="underline underline-offset-4">
            An owner can cancel the deletion
          </PageLink>
        </Banner>
      )}
    </>
  )
}

function Banner({ children }: { children: ReactNode }) {
  return (
    <p role="status" className="border-line border-b bg-silent-soft px-4 py-2 text-silent text-sm sm:px-6 lg:px-8">
      {children}
    </p>
  )
}
