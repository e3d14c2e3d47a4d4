'use client'

import { Dot } from '../../components/tag'
import { useLiveStatus } from './live-updates'

const words = {
  live: { text: 'Live', tone: 'ready', title: 'Boots appear here as they happen.' },
  connecting: { text: 'Connecting', tone: 'silent', title: 'The connection for live updates is being made.' },
  away: { text: 'Not live', tone: 'failed', title: 'Live updates stopped. Reload the page.' },
} as const

/** Whether the page is being kept up to date. */
export function LiveMark() {
  const { text, tone, title } = words[useLiveStatus()]
  return (
    <span role="status" title={title} className="flex items-center gap-1.5 text-ink-soft text-xs">
      <Dot tone={tone} pulsing={tone !== 'failed'} />
      {text}
    </span>
  )
}
