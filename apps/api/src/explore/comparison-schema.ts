import { bootPhases } from '@bootfarm/proto/boot-phases'
import { readFileKinds } from '@bootfarm/proto/uplink'
import { z } from 'zod'
import { count, instant } from '../rules/scalars.ts'
import { figuresView, filters, sampleView } from './schema.ts'
import { medianMin } from './set-differences.ts'

export const comparedFilesMax = 30
/** Lists of files are up to 64 KB each. */
export const fileListsMax = 40

type Shape = typeof filters.shape
type BaseShape = { [Name in keyof Shape & string as `base${Capitalize<Name>}`]: Shape[Name] }
const basePrefix = 'base'

/** The filters of the baseline have the names of the others, behind `base`: one query string has both. */
function baseShape(): BaseShape {
  const fields = Object.entries(filters.shape).map(([name, schema]) => [
    `${basePrefix}${name[0]?.toUpperCase()}${name.slice(1)}`,
    schema.describe(`As \`${name}\`, of the baseline.`),
  ])
  return Object.fromEntries(fields) as BaseShape
}

export const comparisonInput = filters.extend(baseShape())
type FilterOfSet = z.output<typeof filters>

/** The two sets of an input. */
export function setsOf(input: z.output<typeof comparisonInput>): { base: FilterOfSet; set: FilterOfSet } {
  const sets = { base: {}, set: {} }
  for (const [name, value] of Object.entries(input)) {
    const plain = name.slice(basePrefix.length)
    if (!name.startsWith(basePrefix)) Object.assign(sets.set, { [name]: value })
    else Object.assign(sets.base, { [`${plain[0]?.toLowerCase()}${plain.slice(1)}`]: value })
  }
  return sets
}

const differenceView = z.object({
  difference: z.number().describe('Of the set, less that of the baseline.'),
  low: z.number().describe('95 % interval, for all differences of the answer together.'),
  high: z.number().describe('Upper end of the interval.'),
  isClear: z.boolean().describe('The interval does not hold 0.'),
})

const fileOfSet = z.object({
  boots: count.describe('Boots that list it among the files that took the most.'),
  bytes: count.describe('Mean of bytes over all boots that have a list.'),
  storageUs: count.describe('Mean time at the edge over them, from a READ to its bytes.'),
})

const setView = z.object({
  since: instant,
  until: instant,
  sample: sampleView.describe('What the figures are made of.'),
  figures: figuresView.describe('Figures of its boots.'),
  durationCounts: z.array(count).describe('Ready boots by bin of duration.'),
  fileLists: count.describe(`Boots whose files are compared; at most ${fileListsMax}.`),
})

export const comparisonView = z
  .object({
    base: setView.describe('The baseline.'),
    set: setView.describe('The boots that are compared with it.'),
    phases: z
      .array(
        z.object({
          phase: z.enum([...bootPhases, 'other', 'total']).describe('`other`: time in no phase; `total`: all of it.'),
          baseMedianUs: z.number().nullable().describe('Null without ready boots.'),
          setMedianUs: z.number().nullable().describe('Null without ready boots.'),
          difference: differenceView
            .nullable()
            .describe(`Of the medians, in µs; null if a set has fewer than ${medianMin} ready boots.`),
        }),
      )
      .describe('Of ready boots; phases that no boot has are left out.'),
    failures: differenceView.nullable().describe('Of the shares of boots that failed or timed out, of those over.'),
    durationEdgesUs: z.array(count).describe('Lower edges of the bins of duration; each ends where the next begins.'),
    files: z
      .array(
        z.object({
          name: z.string().describe('From the image: untrusted text.'),
          kind: z.enum(readFileKinds).describe('A file, a directory, or an area of the disk.'),
          base: fileOfSet.describe('In the baseline.'),
          set: fileOfSet.describe('In the other set.'),
        }),
      )
      .describe(`What the boots wait longer for than the baseline's, first; at most ${comparedFilesMax}.`),
  })
  .meta({ id: 'BootComparison' })
export type ComparisonView = z.infer<typeof comparisonView>
