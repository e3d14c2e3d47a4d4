import type { ReactNode } from 'react'
import { classNames } from '../lib/class-names'

const tones = {
  plain: 'border-line-strong text-ink-soft',
  ready: 'border-transparent bg-ready-soft text-ready',
  failed: 'border-transparent bg-failed-soft text-failed',
  silent: 'border-transparent bg-silent-soft text-silent',
  live: 'border-transparent bg-live-soft text-live',
} as const
export type Tone = keyof typeof tones

/** A short fact about the thing beside it. */
export function Tag({ tone = 'plain', title, children }: { tone?: Tone; title?: string; children: ReactNode }) {
  return (
    <span
      title={title}
      className={classNames(
        'inline-flex h-5 items-center gap-1.5 whitespace-nowrap rounded-full border px-2 font-medium text-2xs',
        tones[tone],
      )}
    >
      {children}
    </span>
  )
}

const dots = {
  plain: 'bg-ink-faint',
  ready: 'bg-ready',
  failed: 'bg-failed',
  silent: 'bg-silent',
  live: 'bg-live',
} as const

/** Decoration beside a word of the same meaning. */
export function Dot({ tone, pulsing = false }: { tone: Tone; pulsing?: boolean }) {
  return (
    <span
      aria-hidden="true"
      className={classNames(
        'inline-block size-1.5 shrink-0 rounded-full',
        dots[tone],
        pulsing && 'animate-[live-dot_1.4s_ease-in-out_infinite]',
      )}
    />
  )
}

/** Addresses, file names and versions: text that people compare letter by letter. */
export function Mono({ children }: { children: ReactNode }) {
  return <span className="font-mono text-xs">{children}</span>
}
