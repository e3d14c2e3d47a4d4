'use client'

import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Icon } from '../../components/icon'
import { PageLink } from '../../components/page-link'
import { ThemeToggle } from '../../components/theme-toggle'
import { ToastProvider } from '../../components/toast'
import type { Theme } from '../../lib/theme'
import { useTRPC } from '../../lib/trpc'
import { ApiProvider } from '../session/api-provider'
import { Logo } from '../shell/logo'

/** Around the platform's pages: who runs the installation may be a member of no organization. */
export function PlatformFrame({ theme, children }: { theme: Theme; children: ReactNode }) {
  return (
    <ApiProvider>
      <ToastProvider>
        <div className="sticky top-0 z-30 flex h-12 items-center gap-4 border-line border-b bg-canvas/90 px-4 backdrop-blur sm:px-6 lg:px-8">
          <PageLink href="/" aria-label="Bootfarm, overview" className="rounded-md">
            <Logo />
          </PageLink>
          <span className="ml-auto" />
          <ThemeToggle initial={theme} />
        </div>
        <main id="main" tabIndex={-1} className="px-4 py-5 outline-none sm:px-6 lg:px-8">
          {children}
        </main>
      </ToastProvider>
    </ApiProvider>
  )
}

/** For operators of the installation; nobody else sees it. */
export function PlatformLink() {
  const { data } = useQuery(useTRPC().session.access.queryOptions())
  if (!data?.isPlatformOperator) return null
  return (
    <PageLink
      href="/platform"
      className="flex h-8 items-center gap-2.5 rounded-md px-2.5 text-ink-soft text-sm hover:bg-hover hover:text-ink max-md:h-10"
    >
      <Icon name="platform" /> Platform
    </PageLink>
  )
}
