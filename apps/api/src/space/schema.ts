import { z } from 'zod'
import { count, instant, uuid } from '../rules/scalars.ts'

export const spaceGetInput = z.object({ edgeId: uuid })
export const spaceView = z
  .object({
    freeBytes: count.nullable().describe('Of the file system of the store, as last reported; null: not reported.'),
    totalBytes: count.nullable().describe('Its size; null: not reported.'),
    usableBytes: count.nullable().describe('What is free besides the reserve that the edge keeps; null: not reported.'),
    pendingBytes: count.describe('Bytes of the versions that the edge fetches, as far as they are not there yet.'),
    bytesPerDay: z
      .number()
      .int()
      .nullable()
      .describe('Change of the free space, by the last 30 days; negative: it becomes less; null: too short a time.'),
    fullAt: instant.nullable().describe('When nothing more fits, if it goes on like this; null: not within ten years.'),
    warning: z
      .enum(['full', 'filling', 'next_version'])
      .nullable()
      .describe(
        '`full`: nothing more fits; `filling`: within days; `next_version`: a version that the edge is to hold does not fit.',
      ),
    samples: z
      .array(
        z.object({
          at: instant,
          freeBytes: count.describe('Free bytes of the file system of the store.'),
          totalBytes: count.describe('Its size.'),
        }),
      )
      .describe('Every six hours of the last 60 days in which the edge was online, the oldest first.'),
  })
  .meta({ id: 'EdgeSpace' })
export type SpaceView = z.infer<typeof spaceView>
