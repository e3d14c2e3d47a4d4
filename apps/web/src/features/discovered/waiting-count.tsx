'use client'

import { useQuery } from '@tanstack/react-query'
import { useTRPC } from '../../lib/trpc'

/** The maximum that the API counts. */
const countMax = 1000

/** Beside the link to the page: how many machines wait for a decision. */
export function WaitingCount() {
  const { data } = useQuery(useTRPC().discovered.waitingCount.queryOptions())
  if (!data || data.count === 0) return null
  return (
    <span
      title="Unregistered machines waiting for a decision."
      className="ml-auto rounded-full bg-live-soft px-1.5 font-medium text-2xs text-live"
    >
      {data.count}
      {data.count >= countMax && '+'}
      <span className="sr-only"> waiting</span>
    </span>
  )
}
