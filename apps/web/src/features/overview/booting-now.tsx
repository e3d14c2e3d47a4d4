'use client'

import { bootPhaseText } from '@bootfarm/proto/boot-phases'
import { useInfiniteQuery } from '@tanstack/react-query'
import Link from 'next/link'
import { Panel } from '../../components/panel'
import { EmptyState, ErrorState, LoadingState, Skeleton } from '../../components/states'
import { readableError } from '../../lib/readable-error'
import { useTRPC } from '../../lib/trpc'
import { BootBar, barScaleUs } from '../boots/boot-bar'
import { BootDuration } from '../boots/boot-duration'
import type { BootSummary } from '../boots/boot-types'
import { OriginTags, OutcomeTag } from '../boots/outcome-tag'

const shownMax = 8
/** Short boots do not fill the line at once. */
const scaleUsMin = 15_000_000

/** What is booting at this moment; a boot that ends stays until the list is asked for again. */
export function BootingNow() {
  const trpc = useTRPC()
  const query = useInfiniteQuery(
    trpc.boot.list.infiniteQueryOptions(
      { outcome: 'booting', limit: shownMax },
      { getNextPageParam: (page) => page.nextCursor },
    ),
  )
  const boots = query.data?.pages[0]?.items
  return (
    <Panel
      title="Booting now"
      flush
      className="h-full"
      aside={
        <Link href="/boots?outcome=booting" className="rounded underline-offset-4 hover:underline">
          View all
        </Link>
      }
    >
      {boots ? <Boots boots={boots} /> : query.isPending ? <BootsSkeleton /> : null}
      {query.error && !boots && (
        <ErrorState
          title="Could not load running boots."
          text={readableError(query.error)}
          onRetry={() => query.refetch()}
        />
      )}
    </Panel>
  )
}

function Boots({ boots }: { boots: BootSummary[] }) {
  if (boots.length === 0)
    return <EmptyState title="No boots in progress." text="The next boot appears here with its first packet." />
  const scaleUs = Math.max(scaleUsMin, barScaleUs(boots))
  return (
    <ul aria-label="Boots in progress">
      {boots.map((boot) => (
        <li key={boot.id} className="animate-[arrive_1.2s_ease-out] border-line border-t first:border-t-0">
          <Link
            prefetch={false}
            href={`/boots/${boot.id}`}
            className="block px-4 py-2.5 -outline-offset-2 hover:bg-hover"
          >
            <span className="flex items-center gap-2.5">
              <span className="truncate font-medium text-ink">{boot.deviceName ?? boot.mac}</span>
              <OriginTags {...boot} />
              <span className="ml-auto flex shrink-0 items-center gap-3 text-ink-soft text-xs">
                {boot.outcome ? (
                  <OutcomeTag outcome={boot.outcome} />
                ) : (
                  boot.lastPhase && bootPhaseText(boot.lastPhase).title
                )}
                <span className="w-14 text-right">
                  <BootDuration boot={boot} />
                </span>
              </span>
            </span>
            <span className="mt-2 block">
              <BootBar boot={boot} scaleUs={scaleUs} />
            </span>
          </Link>
        </li>
      ))}
    </ul>
  )
}

function BootsSkeleton() {
  return (
    <LoadingState label="Loading running boots">
      <div className="flex flex-col gap-4 p-4">
        <Skeleton className="h-8" />
        <Skeleton className="h-8" />
        <Skeleton className="h-8" />
      </div>
    </LoadingState>
  )
}
