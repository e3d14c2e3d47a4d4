'use client'

import { useEffect, useRef, useState } from 'react'
import { Panel } from '../../components/page'
import { classNames } from '../../lib/class-names'
import { countOf } from '../../lib/format-quantity'
import { errorCode, type RouterOutputs, useTRPCClient } from '../../lib/trpc'
import type { Span } from './waterfall/waterfall'

/** Within this distance of its end, the list is followed. */
const followWithinPx = 40

interface ConsolePanelProps {
  console: ConsoleState
  /** The boot is not over: its newest lines are shown first. */
  running: boolean
  /** Lines of this time stand out. */
  marked: Span | null
  className?: string
}

/** The machine's serial output. All of it is plain text here. */
export function ConsolePanel({ console: { lines, cut, following }, running, marked, className }: ConsolePanelProps) {
  const list = useRef<HTMLElement>(null)
  const atEnd = useRef(running)
  const isMarked = (atMs: number) => marked !== null && atMs * 1000 >= marked.fromUs && atMs * 1000 <= marked.toUs

  // biome-ignore lint/correctness/useExhaustiveDependencies: new lines are what moves the list
  useEffect(() => {
    const element = list.current
    if (element && atEnd.current) element.scrollTop = element.scrollHeight
  }, [lines.length])
  useEffect(() => {
    if (marked === null) return
    const element = list.current
    const first = element?.querySelector<HTMLElement>('[data-marked]')
    if (element && first) element.scrollTop = first.offsetTop - element.clientHeight / 3
  }, [marked])

  return (
    <Panel
      title="Serial console"
      aside={following ? 'following' : countOf(lines.length, 'line')}
      flush
      {...(className ? { className } : {})}
    >
      <section
        ref={list}
        aria-label="Serial console output"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
        tabIndex={0}
        onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
          atEnd.current = scrollHeight - scrollTop - clientHeight < followWithinPx
        }}
        className="relative max-h-[28rem] overflow-auto xl:max-h-[calc(100dvh-9rem)] rounded-b-lg bg-sunken py-2 font-mono text-2xs -outline-offset-2"
      >
        {lines.length === 0 && <p className="px-4 py-1 text-ink-faint">No output yet.</p>}
        <ol>
          {lines.map(({ atMs, text }, index) => (
            <li
              // biome-ignore lint/suspicious/noArrayIndexKey: lines have no identity, and none is ever taken out
              key={index}
              data-marked={isMarked(atMs) || undefined}
              className={classNames('flex min-w-full gap-3 px-4 leading-4', isMarked(atMs) && 'bg-live-soft')}
            >
              <span className="w-14 shrink-0 select-none text-right text-ink-faint">{secondsOf(atMs)}</span>
              <span className="whitespace-pre-wrap break-all text-ink-soft">{text}</span>
            </li>
          ))}
        </ol>
        {cut && <p className="px-4 pt-2 text-ink-faint">First {countOf(lines.length, 'line')} only.</p>}
      </section>
    </Panel>
  )
}

/** Formats the time since the start of the boot, in equal width for alignment. */
function secondsOf(atMs: number): string {
  return `${atMs < 0 ? '−' : ''}${(Math.abs(atMs) / 1000).toFixed(2)}`
}

type ConsolePart = NonNullable<RouterOutputs['boot']['console']>
type ConsoleLine = ConsolePart['lines'][number]

interface ConsoleState {
  lines: ConsoleLine[]
  /** More lines may come. */
  following: boolean
  /** There are more than are shown. */
  cut: boolean
}

const followIntervalMs = 1000
/** A system goes on starting after its boot is ready, and writes as long as it runs. */
const followIntervalAfterBootMs = 5000
const linesMax = 2000
const readingsMax = 20_000

/**
 * A boot's serial console, followed until the device begins its next boot; null if none is kept, or the viewer may not
 * see it.
 */
export function useConsole(bootId: string, running: boolean): ConsoleState | null {
  const client = useTRPCClient()
  const [state, setState] = useState<ConsoleState | null>(null)
  /** Where reading continues, even if the boot has ended meanwhile. */
  const next = useRef<number | undefined>(undefined)
  const lineCount = useRef(0)

  useEffect(() => {
    const controller = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    let readingsLeft = readingsMax
    const intervalMs = running ? followIntervalMs : followIntervalAfterBootMs
    async function read() {
      readingsLeft -= 1
      const part = await client.boot.console
        .query({ bootId, ...(next.current !== undefined && { after: next.current }) }, { signal: controller.signal })
        // A refusal is final; only an unavailable API is retried.
        .catch((error: unknown) => (errorCode(error) === undefined ? undefined : null))
      if (controller.signal.aborted) return
      if (part) {
        next.current = part.next
        lineCount.current += part.lines.length
        setState((known) => withPart(known, part))
        if (lineCount.current > linesMax) return
        if (part.more && part.lines.length > 0) return void read()
      }
      // No console is kept for this machine, or not for this viewer.
      if (part === null || (part?.over && !part.more)) return
      if (readingsLeft > 0) timer = setTimeout(() => void read(), intervalMs)
    }
    void read()
    return () => {
      controller.abort()
      clearTimeout(timer)
    }
  }, [client, bootId, running])

  return state
}

function withPart(known: ConsoleState | null, part: ConsolePart): ConsoleState {
  if (known?.cut || (known?.following === !part.over && part.lines.length === 0)) return known
  const all = [...(known?.lines ?? []), ...part.lines]
  const cut = all.length > linesMax
  return { lines: all.slice(0, linesMax), cut, following: !part.over && !cut }
}
