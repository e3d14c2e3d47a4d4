'use client'

import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Command } from 'cmdk'
import { useRouter } from 'next/navigation'
import { Dialog } from 'radix-ui'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { Icon, type IconName } from '../../components/icon'
import { Age } from '../../components/instant'
import { readableError, useTRPC } from '../../lib/trpc'
import { OutcomeTag } from '../boots/outcome-tag'
import { type Place, places } from '../shell/places'
import { countText, kindTexts, matchText, type SearchGroup, type SearchHit } from './hit-text'
import type { RecentPage } from './recent-pages'

const searchDelayMs = 120
const searchMax = 64
const perKind = 5

interface PaletteProps {
  recent: RecentPage[]
  /** Places that this person may open. */
  isOpenTo: (place: Place) => boolean
  onShortcuts: () => void
  onClose: () => void
}

/** Finds objects and places; arrows choose, Enter opens, Ctrl or ⌘ with Enter in a new tab, Escape closes. */
export function Palette({ recent, isOpenTo, onShortcuts, onClose }: PaletteProps) {
  const [text, setText] = useState('')
  const search = useSearch(text)
  const open = useOpen(onClose)
  const command = useBestFirst(answerOf(search.groups))
  const focusOpener = useFocusOpener()
  return (
    <Dialog.Root open onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-black/40" />
        <Dialog.Content
          aria-describedby={undefined}
          onCloseAutoFocus={focusOpener}
          className="fixed top-2 left-1/2 z-50 flex max-h-[calc(100dvh-1rem)] w-[min(640px,calc(100vw-1rem))] -translate-x-1/2 flex-col overflow-hidden rounded-lg border border-line bg-raised shadow-black/20 shadow-xl sm:top-[12vh] sm:max-h-[70vh]"
        >
          <Dialog.Title className="sr-only">Search and go to</Dialog.Title>
          <Command
            ref={command}
            label="Search and go to"
            shouldFilter={false}
            loop
            // Ctrl-K closes the palette.
            vimBindings={false}
            onKeyDownCapture={open.noteKeys}
            onPointerDownCapture={open.noteKeys}
            className="flex min-h-0 flex-col"
          >
            <SearchField text={text} onChange={setText} />
            <p role="status" className="sr-only">
              {search.announcement}
            </p>
            {search.problem && <Note>{search.problem}</Note>}
            <Command.List className="min-h-0 overflow-y-auto overscroll-contain p-1.5" label="Results">
              {text.trim() === '' && <RecentItems recent={recent} onOpen={open.href} />}
              {search.groups.map((group) => (
                <HitItems key={group.kind} group={group} onOpen={open.href} />
              ))}
              <PlaceItems text={text} isOpenTo={isOpenTo} onOpen={open.href} />
              <MoreItems text={text} onOpen={open.href} onShortcuts={onShortcuts} />
            </Command.List>
          </Command>
          <KeyHints />
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  )
}

/** What matches, a moment after the last key; the last answer stays until the next one is there. */
function useSearch(text: string) {
  const trpc = useTRPC()
  const [term, setTerm] = useState('')
  useEffect(() => {
    const timer = setTimeout(() => setTerm(text.trim()), searchDelayMs)
    return () => clearTimeout(timer)
  }, [text])
  const query = useQuery(
    trpc.search.find.queryOptions(
      { search: term, limit: perKind },
      { enabled: term !== '', placeholderData: keepPreviousData, retry: false, staleTime: 10_000 },
    ),
  )
  const isEmpty = term === '' || text.trim() === ''
  const groups = isEmpty ? [] : (query.data?.groups ?? [])
  const isSettled = !query.isFetching && term === text.trim()
  return {
    groups,
    problem: !isEmpty && query.error ? readableError(query.error) : null,
    announcement: !isEmpty && isSettled && query.data ? countText(groups) : '',
  }
}

/** Returns the focus to where it was: keys open the palette anywhere, so no button is its own. */
function useFocusOpener() {
  const [opener] = useState(() => document.activeElement)
  return (event: Event) => {
    event.preventDefault()
    if (opener instanceof HTMLElement && opener.isConnected) opener.focus()
  }
}

/** Chooses the best row of a new answer as the Home key does: the list keeps a chosen row while that is there. */
function useBestFirst(answer: string) {
  const command = useRef<HTMLDivElement>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: it is done for each answer.
  useEffect(() => {
    command.current?.dispatchEvent(new KeyboardEvent('keydown', { key: 'Home', bubbles: true }))
  }, [answer])
  return command
}

/** Changes with the rows that were found. */
function answerOf(groups: SearchGroup[]): string {
  return groups.flatMap(({ kind, items }) => items.map((hit) => hitValue(kind, hit))).join()
}

function hitValue(kind: SearchGroup['kind'], { id }: SearchHit): string {
  return `${kind} ${id}`
}

/** Opens an address, in a new tab if Ctrl or ⌘ was down. */
function useOpen(onClose: () => void) {
  const router = useRouter()
  const inNewTab = useRef(false)
  return {
    noteKeys: (event: { ctrlKey: boolean; metaKey: boolean }) => {
      inNewTab.current = event.ctrlKey || event.metaKey
    },
    href: (href: string) => {
      // The description of the API is no page of the dashboard.
      if (inNewTab.current || href.startsWith('/api/')) window.open(href, '_blank', 'noopener')
      else router.push(href)
      onClose()
    },
  }
}

function SearchField({ text, onChange }: { text: string; onChange: (text: string) => void }) {
  return (
    <div className="flex items-center gap-2.5 border-line border-b px-3.5 text-ink-faint">
      <Icon name="search" />
      <Command.Input
        value={text}
        onValueChange={onChange}
        maxLength={searchMax}
        placeholder="Name, MAC, IP address, UUID or e-mail"
        className="h-12 min-w-0 flex-1 bg-transparent text-base text-ink outline-none placeholder:text-ink-faint"
      />
      <Dialog.Close
        aria-label="Close"
        className="grid size-8 place-items-center rounded-md hover:bg-hover hover:text-ink"
      >
        <Icon name="close" />
      </Dialog.Close>
    </div>
  )
}

interface ItemProps {
  /** Unique in the list. */
  value: string
  icon: IconName
  name: string
  /** Beside the name. */
  detail?: string | null | undefined
  /** At the end of the row. */
  aside?: ReactNode
  onSelect: () => void
}

function Item({ value, icon, name, detail, aside, onSelect }: ItemProps) {
  return (
    <Command.Item
      value={value}
      onSelect={onSelect}
      className="flex min-h-10 cursor-pointer items-center gap-2.5 rounded-md px-2.5 py-1 text-ink text-sm inset-ring-line-strong data-[selected=true]:bg-hover data-[selected=true]:inset-ring"
    >
      <span className="text-ink-soft">
        <Icon name={icon} />
      </span>
      <span className="flex min-w-0 flex-1 flex-wrap items-baseline gap-x-2.5">
        <span className="min-w-0 truncate">{name}</span>
        {detail && <span className="min-w-0 truncate text-ink-soft text-xs">{detail}</span>}
      </span>
      {aside && <span className="flex shrink-0 items-center gap-2 text-ink-soft text-xs">{aside}</span>}
    </Command.Item>
  )
}

function Group({ title, children }: { title: string; children: ReactNode }) {
  return (
    <Command.Group
      heading={title}
      className="[&_[cmdk-group-heading]]:px-2.5 [&_[cmdk-group-heading]]:pt-2 [&_[cmdk-group-heading]]:pb-1 [&_[cmdk-group-heading]]:font-medium [&_[cmdk-group-heading]]:text-2xs [&_[cmdk-group-heading]]:text-ink-soft"
    >
      {children}
    </Command.Group>
  )
}

type Open = (href: string) => void

function RecentItems({ recent, onOpen }: { recent: RecentPage[]; onOpen: Open }) {
  if (recent.length === 0) return null
  return (
    <Group title="Recent">
      {recent.map(({ href, name, place }) => (
        <Item
          key={href}
          value={`recent ${href}`}
          icon={places.find((one) => one.title === place)?.icon ?? 'overview'}
          name={name}
          detail={place}
          onSelect={() => onOpen(href)}
        />
      ))}
    </Group>
  )
}

function HitItems({ group: { kind, items, hasMore }, onOpen }: { group: SearchGroup; onOpen: Open }) {
  const { title, icon, href } = kindTexts[kind]
  return (
    <Group title={hasMore ? `${title}, the first ${items.length}` : title}>
      {items.map((hit) => (
        <Item
          key={hit.id}
          value={hitValue(kind, hit)}
          icon={icon}
          name={hit.name}
          detail={[hit.place, matchText(hit.match)].filter(Boolean).join(' · ')}
          aside={<BootOf hit={hit} />}
          onSelect={() => onOpen(href(hit))}
        />
      ))}
    </Group>
  )
}

function BootOf({ hit: { boot } }: { hit: SearchHit }) {
  if (!boot) return null
  return (
    <>
      <OutcomeTag outcome={boot.outcome} />
      <span className="max-sm:hidden">
        <Age at={boot.startedAt} />
      </span>
    </>
  )
}

function PlaceItems({ text, isOpenTo, onOpen }: { text: string; isOpenTo: (place: Place) => boolean; onOpen: Open }) {
  const words = text.trim().toLowerCase()
  const shown = places.filter(
    (place) =>
      isOpenTo(place) &&
      place.title
        .toLowerCase()
        .split(' ')
        .concat(place.title.toLowerCase())
        .some((word) => word.startsWith(words)),
  )
  if (shown.length === 0) return null
  return (
    <Group title="Go to">
      {shown.map(({ href, title, icon, key }) => (
        <Item
          key={href}
          value={`place ${href}`}
          icon={icon}
          name={title}
          aside={key && <Keys keys={['g', key]} />}
          onSelect={() => onOpen(href)}
        />
      ))}
    </Group>
  )
}

/** Always at the end, so that the list is never empty. */
function MoreItems({ text, onOpen, onShortcuts }: { text: string; onOpen: Open; onShortcuts: () => void }) {
  const term = text.trim()
  return (
    <Group title={term === '' ? 'Help' : 'More'}>
      {term !== '' && (
        <Item
          value="devices that match"
          icon="search"
          name={`List devices that match “${term}”`}
          onSelect={() => onOpen(`/devices?search=${encodeURIComponent(term)}`)}
        />
      )}
      <Item
        value="shortcuts"
        icon="help"
        name="Show keyboard shortcuts"
        aside={<Keys keys={['?']} />}
        onSelect={onShortcuts}
      />
      <Item value="api reference" icon="help" name="Open the API reference" onSelect={() => onOpen('/api/docs')} />
    </Group>
  )
}

function Note({ children }: { children: string }) {
  return (
    <p role="alert" className="m-1 rounded-md bg-failed-soft px-3 py-2 text-failed text-sm">
      {children}
    </p>
  )
}

/** Keys as they are printed on a keyboard. */
export function Keys({ keys }: { keys: string[] }) {
  return (
    <span className="inline-flex gap-1">
      {keys.map((key) => (
        <kbd
          key={key}
          className="grid h-5 min-w-5 place-items-center rounded border border-line-strong bg-sunken px-1 font-sans text-2xs text-ink-soft"
        >
          {key}
        </kbd>
      ))}
    </span>
  )
}

function KeyHints() {
  return (
    <p className="hidden items-center gap-4 border-line border-t px-3.5 py-2 text-ink-soft text-xs sm:flex">
      <span className="inline-flex items-center gap-1.5">
        <Keys keys={['↑', '↓']} /> choose
      </span>
      <span className="inline-flex items-center gap-1.5">
        <Keys keys={['Enter']} /> open
      </span>
      <span className="inline-flex items-center gap-1.5">
        <Keys keys={['Ctrl', 'Enter']} /> open in a new tab
      </span>
      <span className="inline-flex items-center gap-1.5">
        <Keys keys={['Esc']} /> close
      </span>
    </p>
  )
}
