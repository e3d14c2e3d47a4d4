import Link from 'next/link'
import type { ReactNode } from 'react'
import { ThemeToggle } from '../../components/theme-toggle'
import { ToastProvider } from '../../components/toast'
import type { Theme } from '../../lib/theme'
import { LiveMark, LiveUpdates } from '../live/live-updates'
import { OrganizationBanner } from '../organization/organization-banner'
import { PlatformLink } from '../platform/platform-link'
import { ApiProvider } from '../session/api-provider'
import type { SessionView } from '../session/read-session'
import { SignedInAs } from '../session/signed-in-as'
import { BreadcrumbProvider, Breadcrumbs } from './breadcrumbs'
import { Logo } from './logo'
import { MobileMenu } from './mobile-menu'
import { Navigation } from './navigation'
import { ViewerZone } from './viewer-zone'

interface ShellProps {
  session: SessionView
  theme: Theme
  children: ReactNode
}

/** Around every page: skip link, navigation, breadcrumbs, live mark, organization and user. */
export function Shell({ session, theme, children }: ShellProps) {
  return (
    <ApiProvider>
      <LiveUpdates>
        <ToastProvider>
          <BreadcrumbProvider>
            <SkipLink />
            <div className="flex min-h-dvh">
              <SideBar session={session} theme={theme} />
              <div className="flex min-w-0 flex-1 flex-col">
                <TopBar session={session} theme={theme} />
                <OrganizationBanner />
                <main id="main" tabIndex={-1} className="flex-1 px-4 py-5 outline-none sm:px-6 lg:px-8">
                  {children}
                </main>
              </div>
            </div>
          </BreadcrumbProvider>
        </ToastProvider>
      </LiveUpdates>
    </ApiProvider>
  )
}

function SkipLink() {
  return (
    <a
      href="#main"
      className="sr-only focus:not-sr-only focus:fixed focus:top-2 focus:left-2 focus:z-50 focus:rounded-md focus:bg-ink focus:px-3 focus:py-2 focus:text-canvas"
    >
      Skip to content
    </a>
  )
}

function SideBar({ session, theme }: { session: SessionView; theme: Theme }) {
  return (
    <div className="sticky top-0 hidden h-dvh w-54 shrink-0 flex-col gap-4 border-line border-r p-3 md:flex">
      <Link href="/" className="flex h-8 items-center rounded-md px-2" aria-label="Bootfarm, overview">
        <Logo />
      </Link>
      <Navigation />
      <ShellFoot session={session} theme={theme} />
    </div>
  )
}

function ShellFoot({ session, theme }: { session: SessionView; theme: Theme }) {
  return (
    <div className="mt-auto flex flex-col gap-3">
      <PlatformLink />
      <div className="flex items-center justify-between gap-2 px-2">
        <ViewerZone />
        <ThemeToggle initial={theme} />
      </div>
      <div className="border-line border-t pt-2">
        <SignedInAs session={session} />
      </div>
    </div>
  )
}

function TopBar({ session, theme }: { session: SessionView; theme: Theme }) {
  return (
    <div className="sticky top-0 z-30 flex h-12 items-center gap-3 border-line border-b bg-canvas/90 px-4 backdrop-blur sm:px-6 lg:px-8">
      <MobileMenu>
        <ShellFoot session={session} theme={theme} />
      </MobileMenu>
      <Breadcrumbs />
      <div className="ml-auto">
        <LiveMark />
      </div>
    </div>
  )
}
