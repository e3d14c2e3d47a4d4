import { z } from 'zod'
import { count, instant, uuid } from '../rules/scalars.ts'
import { rangeMinutesMax, rangeMinutesMin } from './load-steps.ts'

const range = {
  rangeMinutes: z
    .number()
    .int()
    .min(rangeMinutesMin, `Choose at least ${rangeMinutesMin} minutes.`)
    .max(rangeMinutesMax, `Loads are kept for 90 days: choose at most ${rangeMinutesMax} minutes.`)
    .default(1440)
    .describe('Length of the range.'),
  until: instant.optional().describe('Its end; now, where it is left out.'),
}
export const edgeLoadInput = z.object({ edgeId: uuid, ...range })
export const siteLoadInput = z.object({ siteId: uuid, ...range })

const perSecond = z.number().nonnegative()
const share = z.number().min(0).max(1)
const ofCounters = 'null: no two heartbeats of the same start of the edge'

const loadPoint = z.object({
  at: instant.describe('The begin of the step.'),
  edges: count.describe('How many edges have reported in this step.'),
  streamBytesPerSecond: perSecond.nullable().describe(`Sent over the stream; ${ofCounters}.`),
  fileBytesPerSecond: perSecond.nullable().describe(`Sent over TFTP and HTTP; ${ofCounters}.`),
  sentPeakBytesPerSecond: perSecond
    .nullable()
    .describe('The most that was sent between two heartbeats; null for several edges, whose peaks need not coincide.'),
  streams: perSecond.nullable().describe(`Devices that streamed their disk, on average; ${ofCounters}.`),
  booting: perSecond.nullable().describe(`Devices that booted, on average; ${ofCounters}.`),
  readsPerSecond: perSecond.nullable().describe(`Disk reads over the stream; ${ofCounters}.`),
  cacheHitShare: share.nullable().describe('Share of the reads that were answered from memory; null without reads.'),
  coldReadMeanUs: perSecond
    .nullable()
    .describe('How long reads that were not in memory waited, on average, in microseconds; null without them.'),
  processorShare: share
    .nullable()
    .describe('Share of the processors that was in use, without work that yields to all other; null if not reported.'),
  processorPeakShare: share.nullable().describe('The highest between two heartbeats; null for several edges.'),
  memoryTotalBytes: count.nullable().describe('Memory of the machine; null if not reported.'),
  memoryAvailableBytes: count.nullable().describe('Memory that programs could still get; null if not reported.'),
  fileCacheBytes: count.nullable().describe('The part of memory that caches files; null if not reported.'),
  storeTotalBytes: count.nullable().describe('Size of the file system of the store; null if not reported.'),
  storeFreeBytes: count.nullable().describe('Of this, free; null if not reported.'),
  linkMbps: count.nullable().describe('Speed of the interface that devices reach; null if it has none.'),
})
export type LoadPoint = z.infer<typeof loadPoint>

export const loadView = z
  .object({
    from: instant.describe('The begin of the range.'),
    until: instant.describe('Its end.'),
    stepMinutes: count.describe('Length of a step: the shorter the range, the finer.'),
    points: z.array(loadPoint).describe('The steps in which an edge has reported, the oldest first.'),
  })
  .meta({ id: 'Load' })
export type LoadView = z.infer<typeof loadView>

/** The highest use of a resource. */
const use = {
  share: share.describe('Share of the resource that was in use.'),
  devices: count.describe('How many devices the edge served then.'),
  at: instant.describe('The begin of the quarter of an hour.'),
}

export const edgeCapacityInput = z.object({ edgeId: uuid })
export const edgeCapacity = z
  .object({
    devices: count
      .nullable()
      .describe('About how many more devices like those of the basis the edge carries; null: too little is measured.'),
    isAtLeast: z
      .boolean()
      .describe('There is more room than this, but the estimate goes no further than three times what was measured.'),
    limitedBy: z.enum(['processor', 'link']).nullable().describe('What comes to its limit first; null: neither.'),
    unknownBecause: z
      .enum(['not_reported', 'few_devices'])
      .nullable()
      .describe(
        '`not_reported`: by an edge of an older release; `few_devices`: its highest use was with few; null: known.',
      ),
    basis: z
      .object({
        from: instant.describe('Measurements from this time on count.'),
        until: instant.describe('And until this time.'),
        devices: count.describe('The most devices that it served at a highest use.'),
        processor: z
          .object(use)
          .nullable()
          .describe('The highest use of the processors, and with how many devices; null if not reported.'),
        link: z
          .object({ ...use, linkMbps: count.describe('Speed of the link, in Mbit/s.') })
          .nullable()
          .describe('The highest use of the link, and with how many devices; null if its speed is not reported.'),
        limitShare: share.describe('Up to this share of a resource counts.'),
      })
      .nullable()
      .describe('What the estimate is of; null if there is none.'),
  })
  .meta({ id: 'EdgeCapacity' })
export type EdgeCapacity = z.infer<typeof edgeCapacity>
