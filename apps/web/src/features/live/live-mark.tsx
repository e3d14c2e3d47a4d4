'use client'

import { Dot } from '../../components/tag'
import { useLiveStatus } from './live-updates'

const words = {
  live: { text: 'Live', tone: 'ready', title: 'Updates appear here live.' },
  connecting: { text: 'Connecting', tone: 'silent', title: 'Connecting to live updates.' },
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
