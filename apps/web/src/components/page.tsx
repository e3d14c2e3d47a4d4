import { type ReactNode, useId } from 'react'
import { classNames } from '../lib/class-names'
import { Button } from './button'
import { Icon } from './icon'

interface PageHeaderProps {
  title: string
  /** Tags beside the title. */
  tags?: ReactNode
  summary?: ReactNode
  actions?: ReactNode
}

export function PageHeader({ title, tags, summary, actions }: PageHeaderProps) {
  return (
    <header className="flex flex-wrap items-end justify-between gap-x-6 gap-y-3">
      <div className="min-w-0">
        <div className="flex flex-wrap items-center gap-x-3 gap-y-1.5">
          <h1 className="truncate font-semibold text-ink text-xl tracking-tight">{title}</h1>
          {tags}
        </div>
        {summary && <div className="mt-1 text-ink-soft text-sm">{summary}</div>}
      </div>
      {actions && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
    </header>
  )
}

/** Vertical rhythm of every page. */
export function Page({ children }: { children: ReactNode }) {
  return <div className="mx-auto flex w-full max-w-[1240px] flex-col gap-5">{children}</div>
}

interface PanelProps {
  title: string
  /** Right of the title. */
  aside?: ReactNode
  /** No inner margin: for tables. */
  flush?: boolean
  className?: string
  children: ReactNode
}

export function Panel({ title, aside, flush = false, className, children }: PanelProps) {
  const titleId = useId()
  return (
    <section
      aria-labelledby={titleId}
      className={classNames('min-w-0 rounded-lg border border-line bg-surface', className)}
    >
      <header className="flex min-h-10 flex-wrap items-center justify-between gap-x-4 gap-y-1 border-line border-b px-4 py-2">
        <h2 id={titleId} className="font-medium text-ink text-sm">
          {title}
        </h2>
        {aside && <div className="flex items-center gap-3 text-ink-soft text-xs">{aside}</div>}
      </header>
      <div className={flush ? '' : 'p-4'}>{children}</div>
    </section>
  )
}

export interface Fact {
  label: string
  value: ReactNode
}

/** Label and value pairs; a value that is not known is a dash with its meaning for screen readers. */
export function Facts({ facts, className }: { facts: Fact[]; className?: string }) {
  return (
    <dl className={classNames('grid grid-cols-[minmax(6.5rem,auto)_1fr] gap-x-5 gap-y-2 text-sm', className)}>
      {facts.map(({ label, value }) => (
        <div key={label} className="col-span-2 grid grid-cols-subgrid">
          <dt className="text-ink-faint">{label}</dt>
          <dd className="min-w-0 break-words text-ink">{value ?? <Unknown />}</dd>
        </div>
      ))}
    </dl>
  )
}

export function Unknown({ label = 'unknown' }: { label?: string }) {
  return (
    <span className="text-ink-faint">
      <span aria-hidden="true">–</span>
      <span className="sr-only">{label}</span>
    </span>
  )
}

/** Shown when nothing exists yet or nothing matches the filters; names what to do about it. */
export function EmptyState({ title, text, action }: { title: string; text: string; action?: ReactNode }) {
  return (
    <div className="flex flex-col items-center gap-1.5 px-6 py-14 text-center">
      <EmptyBars />
      <p className="font-medium text-ink text-sm">{title}</p>
      <p className="max-w-sm text-ink-soft text-sm">{text}</p>
      {action && <div className="mt-3">{action}</div>}
    </div>
  )
}

function EmptyBars() {
  return (
    <svg aria-hidden="true" width="56" height="28" viewBox="0 0 56 28" className="mb-2 text-line-strong">
      {[0, 12, 26, 38].map((x, index) => (
        <rect
          key={x}
          x={x + 0.5}
          y={index * 7 + 0.5}
          width={17}
          height={4}
          rx={2}
          fill="none"
          stroke="currentColor"
          strokeDasharray="3 2"
        />
      ))}
    </svg>
  )
}

/** The failure in one sentence, and a button to retry. */
export function ErrorState({ title, text, onRetry }: { title: string; text: string; onRetry?: () => void }) {
  return (
    <div role="alert" className="flex flex-col items-center gap-1.5 px-6 py-14 text-center">
      <span className="mb-1 text-failed">
        <Icon name="alert" size={22} />
      </span>
      <p className="font-medium text-ink text-sm">{title}</p>
      <p className="max-w-md text-ink-soft text-sm">{text}</p>
      {onRetry && (
        <Button className="mt-3" onClick={onRetry}>
          Try again
        </Button>
      )}
    </div>
  )
}

/** A grey stand-in of the size of what comes. */
export function Skeleton({ className }: { className?: string }) {
  return (
    <span
      aria-hidden="true"
      className={classNames('block animate-pulse rounded bg-line/70 motion-reduce:animate-none', className)}
    />
  )
}

/** Stands in for content; the reader hears the label once. */
export function LoadingState({ label, children }: { label: string; children: ReactNode }) {
  return (
    <div role="status" aria-label={label}>
      {children}
    </div>
  )
}

/** Why something failed. */
export function ProblemNote({ children }: { children: ReactNode }) {
  return (
    <p role="alert" className="rounded-md bg-failed-soft px-3 py-2 text-failed text-sm">
      {children}
    </p>
  )
}
