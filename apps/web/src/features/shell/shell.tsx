'use client'

import type { DehydratedState } from '@tanstack/react-query'
import { usePathname } from 'next/navigation'
import { Dialog } from 'radix-ui'
import { type ReactNode, useId, useState } from 'react'
import { Icon } from '../../components/icon'
import { PageLink } from '../../components/page-link'
import { ThemeToggle } from '../../components/theme-toggle'
import { ToastProvider } from '../../components/toast'
import { classNames } from '../../lib/class-names'
import { type FirstPaint, FirstPaintProvider, useFirstPaint } from '../../lib/first-paint'
import type { Theme } from '../../lib/theme'
import { browserTimeZone } from '../../lib/time-zone'
import { OpenAlertCount } from '../alerts/open-count'
import { WaitingCount } from '../discovered/waiting-count'
import { FirstData } from '../first-data/first-data'
import { LiveMark, LiveUpdates } from '../live/live-updates'
import { OrganizationBanner } from '../organization/organization-banner'
import { PlatformLink } from '../platform/platform-frame'
import { SearchLayer } from '../search/search-layer'
import { ApiProvider } from '../session/api-provider'
import type { SessionView } from '../session/read-session'
import { SignedInAs } from '../session/signed-in-as'
import { useMay } from '../session/use-may'
import { Logo } from './logo'
import { BreadcrumbProvider, Breadcrumbs } from './object-page'
import { type Place, type PlaceGroup, placeGroups, placeOf } from './places'
import { useIsWall } from './use-wall'

interface ShellProps {
  session: SessionView
  theme: Theme
  paint: FirstPaint
  /** What the frame shows first. */
  firstData: DehydratedState
  /** Live updates continue after it. */
  newestChange: string | null
  children: ReactNode
}

/** Around every page: skip link, navigation, breadcrumbs, live mark, organization and user. */
export function Shell({ session, theme, paint, firstData, newestChange, children }: ShellProps) {
  return (
    <FirstPaintProvider value={paint}>
      <ApiProvider>
        <FirstData data={firstData}>
          <LiveUpdates after={newestChange}>
            <ToastProvider>
              <BreadcrumbProvider>
                <Frame session={session} theme={theme}>
                  {children}
                </Frame>
              </BreadcrumbProvider>
            </ToastProvider>
          </LiveUpdates>
        </FirstData>
      </ApiProvider>
    </FirstPaintProvider>
  )
}

function Frame({ session, theme, children }: Pick<ShellProps, 'session' | 'theme' | 'children'>) {
  if (useIsWall()) return <main id="main">{children}</main>
  return (
    <>
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
    </>
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
    <div className="sticky top-0 hidden h-dvh w-54 shrink-0 flex-col gap-4 border-line border-r p-3 md:flex print:hidden">
      <PageLink href="/" className="flex h-8 items-center rounded-md px-2" aria-label="Bootfarm, overview">
        <Logo />
      </PageLink>
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
    <div className="sticky top-0 z-30 flex h-12 items-center gap-3 border-line border-b bg-canvas/90 px-4 backdrop-blur sm:px-6 lg:px-8 print:hidden">
      <MobileMenu>
        <ShellFoot session={session} theme={theme} />
      </MobileMenu>
      <Breadcrumbs />
      <div className="ml-auto flex shrink-0 items-center gap-3">
        <SearchLayer session={session} />
        <LiveMark />
      </div>
    </div>
  )
}

/** The navigation of narrow windows: a sheet from the left. */
function MobileMenu({ children }: { children: ReactNode }) {
  const [open, setOpen] = useState(false)
  return (
    <Dialog.Root open={open} onOpenChange={setOpen}>
      <Dialog.Trigger
        aria-label="Open navigation"
        className="grid size-9 place-items-center rounded-md text-ink-soft hover:bg-hover hover:text-ink md:hidden"
      >
        <Icon name="menu" />
      </Dialog.Trigger>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-black/40" />
        <Dialog.Content
          aria-describedby={undefined}
          className="fixed inset-y-0 left-0 z-50 flex w-72 animate-[appear_140ms_ease-out] flex-col gap-4 border-line border-r bg-canvas p-3"
        >
          <div className="flex items-center justify-between px-2 pt-1">
            <Dialog.Title asChild>
              <div>
                <Logo />
              </div>
            </Dialog.Title>
            <Dialog.Close
              aria-label="Close navigation"
              className="grid size-9 place-items-center rounded-md text-ink-soft"
            >
              <Icon name="close" />
            </Dialog.Close>
          </div>
          <Navigation onNavigate={() => setOpen(false)} />
          <div className="mt-auto">{children}</div>
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  )
}

/** The zone that all times are shown in. */
function ViewerZone() {
  const zone = useFirstPaint()?.timeZone ?? browserTimeZone()
  return (
    <span className="truncate text-2xs text-ink-faint" title="Times are shown in this time zone.">
      {zone.replaceAll('_', ' ')}
    </span>
  )
}

function Navigation({ onNavigate }: { onNavigate?: () => void }) {
  const pathname = usePathname()
  const current = placeOf(pathname)
  return (
    <nav aria-label="Main" className="min-h-0 overflow-y-auto">
      {placeGroups.map((group) => (
        <NavigationGroup key={group.title} {...group} current={current} onNavigate={onNavigate} />
      ))}
    </nav>
  )
}

interface NavigationGroupProps extends PlaceGroup {
  current: Place | undefined
  onNavigate: (() => void) | undefined
}

function NavigationGroup({ title, places, current, onNavigate }: NavigationGroupProps) {
  const titleId = useId()
  return (
    <div className="mt-2.5 first:mt-0">
      <p id={titleId} className="px-2.5 pb-0.5 font-medium text-2xs text-ink-faint">
        {title}
      </p>
      <ul aria-labelledby={titleId} className="flex flex-col gap-px">
        {places.map((place) => (
          <NavigationItem key={place.href} place={place} isCurrent={current === place} onNavigate={onNavigate} />
        ))}
      </ul>
    </div>
  )
}

interface NavigationItemProps {
  place: Place
  isCurrent: boolean
  onNavigate: (() => void) | undefined
}

function NavigationItem({ place, isCurrent, onNavigate }: NavigationItemProps) {
  const may = useMay(place.permission ?? 'organization.read')
  if (place.permission && !may) return null
  return (
    <li>
      <PageLink
        href={place.href}
        aria-current={isCurrent ? 'page' : undefined}
        {...(onNavigate ? { onClick: onNavigate } : {})}
        className={classNames(
          'relative flex h-8 items-center gap-2.5 rounded-md px-2.5 text-sm transition-colors max-md:h-10',
          isCurrent
            ? 'bg-hover font-medium text-ink before:absolute before:top-2 before:bottom-2 before:left-0 before:w-0.5 before:rounded-full before:bg-(--phase-stage2)'
            : 'text-ink-soft hover:bg-hover hover:text-ink',
        )}
      >
        <Icon name={place.icon} />
        {place.title}
        {place.href === '/discovered' && <WaitingCount />}
        {place.href === '/alerts' && <OpenAlertCount />}
      </PageLink>
    </li>
  )
}
