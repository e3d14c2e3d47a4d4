'use client'

import { formatAge, formatInstant, formatInstantInFull, formatUtc } from '../lib/format-time'
import { useNow } from '../lib/use-now'

interface InstantProps {
  /** ISO 8601. */
  at: string
  full?: boolean
}

/** An instant in the viewer's zone; the title has it in UTC. Only for what is rendered in the browser. */
export function Instant({ at, full = false }: InstantProps) {
  const instant = new Date(at)
  const text = full ? formatInstantInFull(instant) : formatInstant(instant, new Date())
  return (
    <time dateTime={at} title={formatUtc(instant)} className="whitespace-nowrap">
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
