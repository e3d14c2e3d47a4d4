import type { ReactNode } from 'react'
import { Page } from '../../components/page'
import { ErrorState, LoadingState, Skeleton } from '../../components/states'
import { errorCode, readableError } from '../../lib/readable-error'
import { PageName } from './breadcrumbs'

interface QueryErrorProps {
  /** The object of the page, in the singular. */
  noun: string
  error: unknown
  onRetry: () => void
}

/** Instead of a page of one object. A missing object is not requested again. */
export function QueryError({ noun, error, onRetry }: QueryErrorProps) {
  const code = errorCode(error)
  // A malformed id is refused as bad input; for the viewer it is an address of nothing.
  if (code === 'NOT_FOUND' || code === 'BAD_REQUEST') {
    return (
      <>
        <PageName name="Not found" />
        <h1 className="sr-only">Not found</h1>
        <ErrorState
          title={`This ${noun} does not exist.`}
          text="Check the address for typing errors. The object may belong to another organization."
        />
      </>
    )
  }
  return <ErrorState title={`Could not load this ${noun}.`} text={readableError(error)} onRetry={onRetry} />
}

interface ObjectQueryProps<T> {
  /** The object of the page, in the singular. */
  noun: string
  query: { data: T | undefined; isPending: boolean; error: unknown; refetch: () => unknown }
  children: (object: T) => ReactNode
}

/** The page of one object: the object, a stand-in while it is loaded, or why there is none. */
export function ObjectQuery<T>({ noun, query, children }: ObjectQueryProps<T>) {
  if (query.data !== undefined) return children(query.data)
  if (!query.isPending) return <QueryError noun={noun} error={query.error} onRetry={() => query.refetch()} />
  return (
    <LoadingState label={`Loading ${noun}`}>
      <Page>
        <Skeleton className="h-7 w-56" />
        <Skeleton className="h-80 w-full rounded-lg" />
      </Page>
    </LoadingState>
  )
}
