import { z } from 'zod'
import type { RouterInputs } from '../../lib/trpc'

export type NetworkInput = Exclude<RouterInputs['network']['report'], void>

export const networkShape = {
  site: z.uuid().optional(),
  period: z.enum(['24h', '7d', '92d']).optional(),
  since: z.iso.datetime().optional(),
  until: z.iso.datetime().optional(),
}
export type NetworkFilters = { [Name in keyof typeof networkShape]?: z.infer<(typeof networkShape)[Name]> }

export const firstPeriod = 'Last 30 days'
export const periodOptions = [
  { value: '24h', label: 'Last 24 hours' },
  { value: '7d', label: 'Last 7 days' },
  { value: '92d', label: 'Last 92 days' },
]
const hourMs = 3_600_000
const periodsMs = { '24h': 24 * hourMs, '7d': 7 * 24 * hourMs, '92d': 92 * 24 * hourMs }
const minuteMs = 60_000

/** @param now its minute is the end of a period, so that the server and the browser ask for the same one */
export function networkInput({ site, period, since, until }: NetworkFilters, now: Date): NetworkInput {
  const end = Math.floor(now.getTime() / minuteMs) * minuteMs
  const begin = since ?? (period && new Date(end - periodsMs[period]).toISOString())
  return {
    ...(site && { siteId: site }),
    ...(begin && { since: begin, until: until ?? new Date(end).toISOString() }),
    ...(until && { until }),
  }
}

/** The same report as a file. */
export function networkExportHref(input: NetworkInput): string {
  const given = Object.entries({ ...input, format: 'csv' }).filter(([, value]) => value !== undefined)
  return `/api/v1/network-exports?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`
}
