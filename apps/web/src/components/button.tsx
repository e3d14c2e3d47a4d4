import type { ComponentProps, ReactNode } from 'react'
import { classNames } from '../lib/class-names'
import { PageLink } from './page-link'

const looks = {
  primary: 'bg-ink text-canvas hover:opacity-90',
  quiet: 'border border-line-strong bg-surface text-ink hover:bg-hover',
  danger: 'bg-failed text-canvas hover:opacity-90',
  bare: 'text-ink-soft hover:bg-hover hover:text-ink',
} as const

export type ButtonLook = keyof typeof looks

/** The look of a button, also for links that look like one. */
function buttonClasses(look: ButtonLook): string {
  return classNames(
    'inline-flex h-8 items-center justify-center gap-2 whitespace-nowrap rounded-md px-3 font-medium text-sm transition-colors disabled:opacity-50',
    looks[look],
  )
}

/** Saves what the address answers with as a file. */
export function DownloadLink({ href, children }: { href: string; children: ReactNode }) {
  return (
    <a href={href} download className={buttonClasses('quiet')}>
      {children}
    </a>
  )
}

interface ButtonProps extends ComponentProps<'button'> {
  look?: ButtonLook
  /** For a row of a table, or the head of a panel. */
  small?: boolean
  /** Shows that the answer is awaited; the button stays focusable and takes no second press. */
  busy?: boolean
}

export function Button({ look = 'quiet', small = false, busy = false, className, onClick, ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      aria-busy={busy || undefined}
      aria-disabled={busy || undefined}
      onClick={busy ? (event) => event.preventDefault() : onClick}
      className={classNames(buttonClasses(look), small && 'h-7!', busy && 'opacity-70', className)}
      {...rest}
    />
  )
}

interface LinkButtonProps {
  href: string
  look?: ButtonLook
  children: ReactNode
}

/** A link that looks like a button: it leads to another page. */
export function LinkButton({ href, look = 'quiet', children }: LinkButtonProps) {
  return (
    <PageLink href={href} className={buttonClasses(look)}>
      {children}
    </PageLink>
  )
}

/** A link within a text, or in a cell of a table, where it is underlined under the pointer alone. */
export function TextLink({ href, quiet = false, children }: { href: string; quiet?: boolean; children: ReactNode }) {
  const look = quiet ? 'hover:underline' : 'underline decoration-line-strong hover:decoration-ink'
  return (
    <PageLink href={href} className={classNames('rounded underline-offset-4', look)}>
      {children}
    </PageLink>
  )
}

/** The name of an object as a link to its page. */
export function ObjectLink({ href, children }: { href: string; children: ReactNode }) {
  return (
    <PageLink href={href} className="rounded font-medium text-ink underline-offset-4 hover:underline">
      {children}
    </PageLink>
  )
}
