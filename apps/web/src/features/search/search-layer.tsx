'use client'

import { useQuery } from '@tanstack/react-query'
import dynamic from 'next/dynamic'
import { usePathname, useRouter } from 'next/navigation'
import { useEffect, useRef, useState } from 'react'
import { z } from 'zod'
import { Icon } from '../../components/icon'
import { ShortcutKeys } from '../../lib/shortcut-keys'
import { readStored, writeStored } from '../../lib/stored-value'
import { useTRPC } from '../../lib/trpc'
import type { SessionView } from '../session/read-session'
import { notFound, usePageName } from '../shell/object-page'
import { type Place, placeOf, places } from '../shell/places'
import { readRecentPages, rememberPage } from './recent-pages'

// Neither is part of a page's first load.
const Palette = dynamic(() => import('./palette').then((module) => module.Palette), { ssr: false })
const ShortcutsDialog = dynamic(() => import('./shortcuts-dialog').then((module) => module.ShortcutsDialog), {
  ssr: false,
})

const singleKeysKey = 'bootfarm-single-keys'
/** Where keys have a meaning of their own. */
const typingTargets = 'input, textarea, select, [contenteditable], [role="dialog"], [role="alertdialog"], [role="menu"]'

/** The buttons that open the palette and the list of shortcuts, both of these, and the shortcuts themselves. */
export function SearchLayer({ session }: { session: SessionView }) {
  const [shown, setShown] = useState<'palette' | 'shortcuts' | null>(null)
  const [withSingleKeys, setSingleKeys] = useSingleKeys()
  const isOpenTo = useOpenPlaces()
  const viewer = { email: session.user.email, organizationId: session.organization.id }
  useRememberedPage(viewer)
  useShortcuts({ withSingleKeys, isOpenTo, shown, setShown })
  return (
    <>
      <button
        type="button"
        onClick={() => setShown('palette')}
        aria-keyshortcuts="Control+K Meta+K"
        className="flex h-9 items-center gap-2 rounded-md border-line-strong px-2.5 text-ink-soft text-sm hover:bg-hover hover:text-ink sm:h-8 sm:w-56 sm:border"
      >
        <Icon name="search" />
        <span className="max-sm:sr-only">Search</span>
        <span aria-hidden="true" className="ml-auto text-2xs text-ink-faint max-sm:hidden">
          Ctrl K
        </span>
      </button>
      <button
        type="button"
        aria-label="Help"
        onClick={() => setShown('shortcuts')}
        className="grid size-8 place-items-center rounded-md text-ink-soft hover:bg-hover hover:text-ink max-sm:hidden"
      >
        <Icon name="help" />
      </button>
      {shown === 'palette' && (
        <Palette
          recent={readRecentPages(viewer)}
          isOpenTo={isOpenTo}
          onShortcuts={() => setShown('shortcuts')}
          // The list of shortcuts may have taken its place.
          onClose={() => setShown((now) => (now === 'palette' ? null : now))}
        />
      )}
      {shown === 'shortcuts' && (
        <ShortcutsDialog
          isOpenTo={isOpenTo}
          withSingleKeys={withSingleKeys}
          onSingleKeys={setSingleKeys}
          onClose={() => setShown(null)}
        />
      )}
    </>
  )
}

function useSingleKeys(): [boolean, (isOn: boolean) => void] {
  const [isOn, setOn] = useState(true)
  useEffect(() => setOn(readStored(singleKeysKey, z.boolean()) ?? true), [])
  return [
    isOn,
    (next) => {
      setOn(next)
      writeStored(singleKeysKey, next)
    },
  ]
}

/** Decides about each place by the person's permissions, as the navigation does. */
function useOpenPlaces(): (place: Place) => boolean {
  const { data } = useQuery(useTRPC().session.me.queryOptions())
  return ({ permission }) =>
    permission === undefined || (data?.grants.some(({ permissions }) => permissions.includes(permission)) ?? false)
}

interface ShortcutOptions {
  withSingleKeys: boolean
  isOpenTo: (place: Place) => boolean
  shown: 'palette' | 'shortcuts' | null
  setShown: (shown: 'palette' | 'shortcuts' | null) => void
}

function useShortcuts(options: ShortcutOptions): void {
  const router = useRouter()
  const keys = useRef(new ShortcutKeys())
  const latest = useRef(options)
  latest.current = options
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      const { withSingleKeys, isOpenTo, shown, setShown } = latest.current
      const { key, ctrlKey, metaKey, altKey, target, timeStamp } = event
      if (event.defaultPrevented || event.isComposing || event.repeat) return
      const isTyping = target instanceof Element && target.closest(typingTargets) !== null
      const press = { key, ctrlKey, metaKey, altKey, isTyping, atMs: timeStamp }
      const shortcut = keys.current.press(press, withSingleKeys)
      if (!shortcut) return
      // Another dialog holds the focus: it is answered first.
      if (shown === null && document.querySelector('[role="dialog"], [role="alertdialog"]')) return
      if (shortcut.kind === 'palette') setShown(shown === 'palette' ? null : 'palette')
      if (shortcut.kind === 'help') setShown('shortcuts')
      const place = shortcut.kind === 'go' ? places.find((one) => one.key === shortcut.key) : undefined
      if (shortcut.kind === 'go' && !(place && isOpenTo(place))) return
      event.preventDefault()
      if (place) router.push(place.href)
    }
    window.addEventListener('keydown', onKeyDown)
    return () => window.removeEventListener('keydown', onKeyDown)
  }, [router])
}

/** The open page of an object is the newest of the recent ones. */
function useRememberedPage({ email, organizationId }: { email: string; organizationId: string }): void {
  const pathname = usePathname()
  const name = usePageName()
  useEffect(() => {
    const place = placeOf(pathname)
    if (!name || name === notFound || !place || pathname === place.href) return
    rememberPage({ email, organizationId }, { href: pathname, name, place: place.title })
  }, [name, pathname, email, organizationId])
}
