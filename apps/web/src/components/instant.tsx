'use client'

import { useFirstPaint } from '../lib/first-paint'
import { formatAge, formatInstant, formatInstantInFull, formatUtc } from '../lib/format-time'
import { useNow } from '../lib/use-now'

interface InstantProps {
  /** ISO 8601. */
  at: string
  full?: boolean
}

/** An instant in the viewer's zone; the title has it in UTC. */
export function Instant({ at, full = false }: InstantProps) {
  const instant = new Date(at)
  const paint = useFirstPaint()
  const now = paint ? new Date(paint.now) : new Date()
  const text = full ? formatInstantInFull(instant, paint?.timeZone) : formatInstant(instant, now, paint?.timeZone)
  return (
    // The server's version of Unicode's data may write a month or a zone in another way.
    <time suppressHydrationWarning dateTime={at} title={formatUtc(instant)} className="whitespace-nowrap">
      {text}
    </time>
  )
}

/** How long ago, kept up to date. */
export function Age({ at }: { at: string }) {
  const instant = new Date(at)
  return (
    <time dateTime={at} title={formatUtc(instant)} className="whitespace-nowrap">
      {formatAge(instant, useNow(1000))}
    </time>
  )
}
