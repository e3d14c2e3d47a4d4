import type { ReactNode } from 'react'
import { classNames } from '../lib/class-names'
import { Button } from './button'
import { Icon } from './icon'

/** Nothing there yet, or nothing that fits the filters; says what would bring something. */
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

/** Stands where content will be; the reader hears what is loaded once. */
export function LoadingState({ label, children }: { label: string; children: ReactNode }) {
  return (
    <div role="status" aria-label={label}>
      {children}
    </div>
  )
}
