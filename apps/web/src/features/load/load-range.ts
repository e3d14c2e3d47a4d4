import type { Zoom } from '../../components/charts/use-time-plot'

/** What the API is asked for. */
export interface LoadRange {
  rangeMinutes: number
  until: string
}

/** In minutes. */
export const ranges = [
  { value: '60', label: '1\u00a0h', name: 'Last hour' },
  { value: '360', label: '6\u00a0h', name: 'Last 6 hours' },
  { value: '1440', label: '24\u00a0h', name: 'Last 24 hours' },
  { value: '10080', label: '7\u00a0d', name: 'Last 7 days' },
  { value: '43200', label: '30\u00a0d', name: 'Last 30 days' },
  { value: '129600', label: '90\u00a0d', name: 'Last 90 days' },
] as const

const minutesMin = 5
const minutesMax = 129_600

/** A part of a chart as a range that the API takes: whole minutes, at least five, up to now. */
export function rangeOfZoom({ from, until }: Zoom, nowMs: number): LoadRange {
  const minutes = Math.min(minutesMax, Math.max(minutesMin, Math.ceil((until - from) / 60)))
  // Around the same middle, where it became longer.
  const end = ((from + until) / 2 + minutes * 30) * 1000
  return { rangeMinutes: minutes, until: new Date(Math.min(nowMs, Math.round(end))).toISOString() }
}
