'use client'

import { useQuery } from '@tanstack/react-query'
import { LoadingState, Skeleton } from '../../components/states'
import { readableError } from '../../lib/readable-error'
import { useTRPC } from '../../lib/trpc'
import { previewSentences } from './preview-text'
import type { VersionPreview } from './version-types'

/** Asked anew whenever a dialog opens: what was true a minute ago is no preview. */
export function usePreview(versionId: string, action: VersionPreview['action']) {
  return useQuery(
    useTRPC().version.preview.queryOptions({ versionId, action }, { staleTime: 0, gcTime: 0, retry: false }),
  )
}

/** What will happen, before it is done; or why it would be refused. */
export function PreviewList({ query }: { query: ReturnType<typeof usePreview> }) {
  const { data, error } = query
  if (data)
    return (
      <section aria-label="Preview" className="flex flex-col gap-3 text-sm">
        {data.refusals.length > 0 ? (
          <ul className="flex flex-col gap-1 rounded-md bg-failed-soft px-3 py-2 text-failed">
            {data.refusals.map((text) => (
              <li key={text} className="break-words">
                {text}
              </li>
            ))}
          </ul>
        ) : (
          <ul className="flex list-disc flex-col gap-1 pl-5 text-ink-soft">
            {previewSentences(data).map((text) => (
              <li key={text} className="break-words">
                {text}
              </li>
            ))}
          </ul>
        )}
      </section>
    )
  if (error)
    return (
      <p role="alert" className="text-failed text-sm">
        {readableError(error)}
      </p>
    )
  return (
    <LoadingState label="Loading preview">
      <Skeleton className="h-4 w-full" />
      <Skeleton className="mt-2 h-4 w-2/3" />
    </LoadingState>
  )
}
