'use client'

import { usePathname } from 'next/navigation'
import { createContext, type ReactNode, useContext, useEffect, useState } from 'react'
import { Button } from '../../components/button'
import { Icon } from '../../components/icon'
import { ErrorState, LoadingState, Page, Skeleton } from '../../components/page'
import { PageLink } from '../../components/page-link'
import { errorCode, readableError } from '../../lib/trpc'
import { placeOf } from './places'

interface Named {
  name: string
  /** Of the page that said so: for a moment the next page is open, and its name not known. */
  pathname: string
}

const NameContext = createContext<{ named: Named | null; setNamed: (named: Named | null) => void }>({
  named: null,
  setNamed: () => {},
})

export function BreadcrumbProvider({ children }: { children: ReactNode }) {
  const [named, setNamed] = useState<Named | null>(null)
  return <NameContext value={{ named, setNamed }}>{children}</NameContext>
}

/** The title of a page whose object does not exist. */
export const notFound = 'Not found'

/** The name of the object that the open page shows; null while it loads, and on pages of none. */
export function usePageName(): string | null {
  const pathname = usePathname()
  const { named } = useContext(NameContext)
  return named?.pathname === pathname ? named.name : null
}

/** Names the thing that the page shows, for the breadcrumbs and the window's title. Rendered by pages of one thing. */
export function PageName({ name }: { name: string }) {
  const pathname = usePathname()
  const { setNamed } = useContext(NameContext)
  useEffect(() => {
    setNamed({ name, pathname })
    return () => setNamed(null)
  }, [name, pathname, setNamed])
  return <title>{`${name} · Bootfarm`}</title>
}

export function Breadcrumbs() {
  const pathname = usePathname()
  const { named } = useContext(NameContext)
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
              {named?.name ?? '…'}
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
        <PageName name={notFound} />
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
