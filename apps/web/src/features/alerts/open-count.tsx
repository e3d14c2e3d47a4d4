'use client'

import { useQuery } from '@tanstack/react-query'
import { useTRPC } from '../../lib/trpc'
import { alertRefreshMs } from './alert-refresh'

/** Beside the link to the page: how many alerts are open. */
export function OpenAlertCount() {
  const { data } = useQuery(useTRPC().alert.openCount.queryOptions(undefined, { refetchInterval: alertRefreshMs }))
  if (!data || data.count === 0) return null
  const isNew = data.unacknowledged > 0
  return (
    <span
      title={isNew ? 'Open alerts, some of which nobody has acknowledged.' : 'Open alerts, all acknowledged.'}
      className={`ml-auto rounded-full px-1.5 font-medium text-2xs ${isNew ? 'bg-failed-soft text-failed' : 'bg-silent-soft text-silent'}`}
    >
      {data.count}
      <span className="sr-only"> open</span>
    </span>
  )
}
