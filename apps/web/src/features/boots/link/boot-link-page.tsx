'use client'

import { useQuery } from '@tanstack/react-query'
import { useRouter } from 'next/navigation'
import { useEffect } from 'react'
import { Instant } from '../../../components/instant'
import { EmptyState, LoadingState, Page, Skeleton } from '../../../components/page'
import { PageLink } from '../../../components/page-link'
import { useTRPC } from '../../../lib/trpc'
import { PageName, QueryError } from '../../shell/object-page'
import { bootsOfLink, linkIdOf } from './boot-link'

/** A device prints its link before its boot is reported. */
const askAgainMs = 3_000
const choicesMax = 5

/**
 * The page that a device's screen leads to. What a person may not see is not found, as if it did not exist: an id that
 * was guessed tells nothing.
 */
export function BootLinkPage({ linkId }: { linkId: string }) {
  const known = linkIdOf(linkId)
  return (
    <Page>
      <PageName name="Boot" />
      <h1 className="sr-only">Boot</h1>
      {known === null ? <NotALink /> : <LinkedBoot linkId={known} />}
    </Page>
  )
}

function LinkedBoot({ linkId }: { linkId: string }) {
  const trpc = useTRPC()
  const router = useRouter()
  const query = useQuery(
    trpc.search.find.queryOptions(
      { search: linkId, kinds: ['boot'], limit: choicesMax },
      { refetchInterval: ({ state }) => (bootsOfLink(linkId, state.data).length === 0 ? askAgainMs : false) },
    ),
  )
  const boots = bootsOfLink(linkId, query.data)
  const only = boots.length === 1 ? boots[0] : undefined
  useEffect(() => {
    if (only) router.replace(`/boots/${only.id}`)
  }, [router, only])
  if (query.isPending || only)
    return (
      <LoadingState label="Looking for the boot">
        <Skeleton className="h-40" />
      </LoadingState>
    )
  if (query.isError) return <QueryError noun="boot" error={query.error} onRetry={() => query.refetch()} />
  if (boots.length === 0)
    return (
      <EmptyState
        title={`This organization has no boot ${linkId}.`}
        text="Compare the address with the device’s screen. A boot is found as soon as its edge has reported it: this page keeps looking. If it belongs to another organization of yours, switch to that one."
        action={<AllBoots />}
      />
    )
  return (
    <ul className="flex flex-col gap-2 text-sm">
      {boots.map(({ id, name, boot }) => (
        <li key={id}>
          <PageLink href={`/boots/${id}`} className="underline underline-offset-4">
            Boot of {name}
          </PageLink>{' '}
          {boot && <Instant at={boot.startedAt} />}
        </li>
      ))}
    </ul>
  )
}

function NotALink() {
  return (
    <EmptyState
      title="This is no boot’s link."
      text="Enter the address as the device’s screen shows it: 12 digits from 0 to 9 and a to f after /b/."
      action={<AllBoots />}
    />
  )
}

function AllBoots() {
  return (
    <PageLink href="/boots" className="text-sm underline underline-offset-4">
      Go to all boots
    </PageLink>
  )
}
