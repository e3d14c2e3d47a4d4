'use client'

import { useEffect, useRef } from 'react'
import { Panel } from '../../components/panel'
import { classNames } from '../../lib/class-names'
import { countOf } from '../../lib/format-quantity'
import type { ConsoleState } from './use-console'
import type { Span } from './waterfall/waterfall'

/** So near to its end the list is followed. */
const followWithinPx = 40

interface ConsolePanelProps {
  console: ConsoleState
  running: boolean
  /** Lines of this time stand out. */
  marked: Span | null
  className?: string
}

/** What the machine wrote to its serial console. Whatever it wrote is plain text here. */
export function ConsolePanel({ console: { lines, cut }, running, marked, className }: ConsolePanelProps) {
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
      aside={running ? 'following' : countOf(lines.length, 'line')}
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

/** Since the boot's begin, all alike so that they stand in one column. */
function secondsOf(atMs: number): string {
  return `${atMs < 0 ? '−' : ''}${(Math.abs(atMs) / 1000).toFixed(2)}`
}
