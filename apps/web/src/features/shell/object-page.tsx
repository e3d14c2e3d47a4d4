'use client'

import { usePathname } from 'next/navigation'
import { createContext, type ReactNode, useContext, useEffect, useState } from 'react'
import { Button } from '../../components/button'
import { Icon } from '../../components/icon'
import { ErrorState, LoadingState, Page, Skeleton } from '../../components/page'
import { PageLink } from '../../components/page-link'
import { errorCode, readableError } from '../../lib/trpc'
import { placeOf } from './places'

const NameContext = createContext<{ name: string | null; setName: (name: string | null) => void }>({
  name: null,
  setName: () => {},
})

export function BreadcrumbProvider({ children }: { children: ReactNode }) {
  const [name, setName] = useState<string | null>(null)
  return <NameContext value={{ name, setName }}>{children}</NameContext>
}

/** Names the thing that the page shows, for the breadcrumbs and the window's title. Rendered by pages of one thing. */
export function PageName({ name }: { name: string }) {
  const { setName } = useContext(NameContext)
  useEffect(() => {
    setName(name)
    return () => setName(null)
  }, [name, setName])
  return <title>{`${name} · Bootfarm`}</title>
}

export function Breadcrumbs() {
  const pathname = usePathname()
  const { name } = useContext(NameContext)
  const place = placeOf(pathname)
  if (!place) return <span />
  const deeper = pathname !== place.href
  return (
    <nav aria-label="Breadcrumb" className="min-w-0">
      <ol className="flex items-center gap-1.5 text-sm">
        <li className={deeper ? 'shrink-0' : 'min-w-0'}>
          {deeper ? (
            <PageLink href={place.href} className="rounded text-ink-soft hover:text-ink">
              {place.title}
            </PageLink>
          ) : (
            <span aria-current="page" className="font-medium text-ink">
              {place.title}
            </span>
          )}
        </li>
        {deeper && (
          <li className="flex min-w-0 items-center gap-1.5">
            <span className="text-ink-faint">
              <Icon name="chevron" size={12} />
            </span>
            <span aria-current="page" className="truncate font-medium text-ink">
              {name ?? '…'}
            </span>
          </li>
        )}
      </ol>
    </nav>
  )
}

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

/** The page of one object: the object, a stand-in while it loads, or the reason for its absence. */
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

/** Says on a page with a form that the object has changed since the form was opened. */
export function EditedNotice({ noun, onLoad }: { noun: string; onLoad: () => void }) {
  return (
    <div className="flex flex-wrap items-center justify-between gap-3 rounded-lg bg-silent-soft px-4 py-3 text-silent text-sm">
      <p>Someone else edited this {noun}. Load the latest version before you save.</p>
      <Button onClick={onLoad}>Load latest version</Button>
    </div>
  )
}
