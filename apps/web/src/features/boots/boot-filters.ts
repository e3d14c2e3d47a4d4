import { bootOutcomes } from '@bootfarm/proto/boot-phases'
import { z } from 'zod'
import type { BootListInput } from './boot-list'

const hourMs = 3_600_000
const periodsMs = {
  '1h': hourMs,
  '24h': 24 * hourMs,
  '7d': 7 * 24 * hourMs,
  '30d': 30 * 24 * hourMs,
} as const

export const bootFilterShape = {
  outcome: z.enum([...bootOutcomes, 'booting']).optional(),
  device: z.uuid().optional(),
  period: z.enum(['1h', '24h', '7d', '30d']).optional(),
  origin: z.enum(['device', 'simulated', 'generated']).optional(),
}
type BootFilters = { [Name in keyof typeof bootFilterShape]?: z.infer<(typeof bootFilterShape)[Name]> }

export const periodOptions = [
  { value: '1h', label: 'Last hour' },
  { value: '24h', label: 'Last 24 hours' },
  { value: '7d', label: 'Last 7 days' },
  { value: '30d', label: 'Last 30 days' },
]

export const originOptions = [
  { value: 'device', label: 'Real machines' },
  { value: 'simulated', label: 'Simulated devices' },
  { value: 'generated', label: 'Demo history' },
]

/** The API's input. @param now fixed while the filters stay, so that a list does not change each minute */
export function bootListInput({ outcome, device, period, origin }: BootFilters, now: Date): BootListInput {
  return {
    ...(outcome && { outcome }),
    ...(device && { deviceId: device }),
    ...(period && { since: new Date(now.getTime() - periodsMs[period]).toISOString() }),
    ...(origin && { origin }),
  }
}
