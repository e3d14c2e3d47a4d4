import { formatBytes } from '../../lib/format-quantity'
import type { RouterOutputs } from '../../lib/trpc'

export type Space = RouterOutputs['space']['get']

const dayMs = 86_400_000

const warnings: Record<NonNullable<Space['warning']>, string> = {
  full: 'The store takes no more versions and writes. Delete versions, or give it a larger disk.',
  filling: 'The store fills within days. Delete versions, set a retention, or give it a larger disk.',
  next_version:
    'A version that this edge is to hold does not fit. Delete versions, give the store a larger disk, or change the placement.',
}

/** Null: there is nothing to warn of. */
export function warningText({ warning }: Space): string | null {
  return warning && warnings[warning]
}

export function trendText({ bytesPerDay }: Space): string {
  if (bytesPerDay === null) return 'known after two days of reports'
  if (bytesPerDay === 0) return 'unchanged over the last 30 days'
  return `${formatBytes(Math.abs(bytesPerDay))} ${bytesPerDay < 0 ? 'less' : 'more'} free each day`
}

export function forecastText({ fullAt, bytesPerDay }: Space, nowMs: number): string {
  if (fullAt === null) return bytesPerDay === null ? 'not known yet' : 'not within ten years'
  const days = Math.floor((Date.parse(fullAt) - nowMs) / dayMs)
  if (days < 1) return 'within a day'
  return days === 1 ? 'in 1 day' : `in ${days} days`
}

/** What the line shows. */
export function lineText({ samples }: Space): string {
  return `The last 60 days, from 0 to ${formatBytes(mostOf(samples))}.`
}

function mostOf(samples: Space['samples']): number {
  return Math.max(0, ...samples.map(({ totalBytes }) => totalBytes))
}

/** The free space as the points of a line in a box, `0,0` at its top left; empty: there are too few samples. */
export function linePoints({ samples }: Space, { width, height }: { width: number; height: number }): string {
  const [first, last] = [samples[0], samples.at(-1)]
  if (!first || !last || samples.length < 2) return ''
  const from = Date.parse(first.at)
  const span = Date.parse(last.at) - from
  const most = mostOf(samples)
  return samples
    .map(({ at, freeBytes }) => {
      const x = ((Date.parse(at) - from) / span) * width
      const y = height - (most === 0 ? 0 : freeBytes / most) * height
      return `${x.toFixed(1)},${y.toFixed(1)}`
    })
    .join(' ')
}
