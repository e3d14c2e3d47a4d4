import { z } from 'zod'

/** What a storm shows is in the address: a link, a reload and a wall show the same. */
export const stormShape = {
  farm: z.uuid().optional(),
  site: z.uuid().optional(),
  collection: z.uuid().optional(),
  run: z.uuid().optional(),
  period: z.enum(['15m', '4h', '24h']).optional(),
  order: z.enum(['phase']).optional(),
  view: z.enum(['table']).optional(),
  wall: z.enum(['on']).optional(),
}
type StormFilters = { [Name in keyof typeof stormShape]?: string | undefined }

const minutesOf: Record<string, number> = { '15m': 15, '4h': 240, '24h': 1440 }

/** Without a period it is the last hour. */
export const periodOptions = [
  { value: '15m', label: 'Last 15 minutes' },
  { value: '4h', label: 'Last 4 hours' },
  { value: '24h', label: 'Last 24 hours' },
]

export function stormInput({ farm, site, collection, run, period }: StormFilters) {
  return {
    ...(farm && { farmId: farm }),
    ...(site && { siteId: site }),
    ...(collection && { collectionId: collection }),
    ...(run && { runId: run }),
    ...(period && { minutes: minutesOf[period] ?? 60 }),
  }
}
