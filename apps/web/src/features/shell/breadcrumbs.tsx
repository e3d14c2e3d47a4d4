'use client'

import Link from 'next/link'
import { usePathname } from 'next/navigation'
import { createContext, type ReactNode, useContext, useEffect, useState } from 'react'
import { Icon } from '../../components/icon'
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
            <Link href={place.href} className="rounded text-ink-soft hover:text-ink">
              {place.title}
            </Link>
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
