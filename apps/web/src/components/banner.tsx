import type { ReactNode } from 'react'
import { Icon } from './icon'

interface BannerProps {
  /** Names the region. */
  label: string
  tone: 'failed' | 'silent'
  children: ReactNode
  /** A button at the end. */
  action?: ReactNode
}

/** Above a page's content: what somebody should see first, and what to do about it. */
export function Banner({ label, tone, children, action }: BannerProps) {
  const look = tone === 'failed' ? 'bg-failed-soft text-failed' : 'bg-silent-soft text-silent'
  return (
    <section aria-label={label} className={`flex flex-wrap items-start gap-3 rounded-lg px-4 py-3 ${look}`}>
      <span className="pt-0.5">
        <Icon name="alert" />
      </span>
      <div className="min-w-0 flex-1 break-words text-sm">{children}</div>
      {action}
    </section>
  )
}
