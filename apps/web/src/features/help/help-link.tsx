import type { ReactNode } from 'react'
import { Icon } from '../../components/icon'
import { PageLink } from '../../components/page-link'

interface HelpLinkProps {
  /** A page of the documentation, mostly with its section: one of help-links.ts. */
  to: string
  /** Leaves what a person has entered in a dialog where it is. */
  inNewTab?: boolean
  /** What the help is about: it says where the link leads. */
  children: ReactNode
}

export function HelpLink({ to, inNewTab = false, children }: HelpLinkProps) {
  return (
    <PageLink
      href={`/help/${to}`}
      target={inNewTab ? '_blank' : undefined}
      className="inline-flex items-center gap-1.5 text-ink-soft text-sm underline underline-offset-4 hover:text-ink"
    >
      <Icon name="help" size={14} />
      {children}
    </PageLink>
  )
}
