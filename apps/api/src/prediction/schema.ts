import { z } from 'zod'
import { count, uuid } from '../rules/scalars.ts'
import { limitNames } from './model/predict-storm.ts'
import { bootsMin } from './model/site-model.ts'

/** A site's devices boot from its edges: more of them have no edge that this was measured for. */
export const predictedDevicesMax = 2_000
const startsPerSecondMax = 1_000
const mbpsMax = 400_000

export const predictionInput = z.object({
  siteId: uuid.describe('Where the devices boot.'),
  versionId: uuid.describe('What they boot: a version of a vDisk of the site’s farm.'),
  devices: z
    .number()
    .int()
    .min(1, 'Predict at least 1 device.')
    .max(predictedDevicesMax, `A prediction has at most ${predictedDevicesMax} devices.`)
    .optional()
    .describe('Absent: as many as the site has that boot the vDisk.'),
  startsPerSecond: z
    .number()
    .positive('Choose more than 0 starts a second.')
    .max(startsPerSecondMax, `Choose at most ${startsPerSecondMax} starts a second.`)
    .optional()
    .describe('Absent: all start at once.'),
  reads: z.enum(['warm', 'cold']).default('warm').describe('`cold`: the edges’ memory holds nothing of the version.'),
  linkMbps: z
    .number()
    .int()
    .min(1, 'Choose at least 1 Mbit/s.')
    .max(mbpsMax, `Choose at most ${mbpsMax} Mbit/s.`)
    .optional()
    .describe('Speed of each edge’s link. Absent: as the edges report it.'),
})

const range = z.object({
  value: count.describe('The most likely time.'),
  low: count.describe('Nine of ten measurements lie between this'),
  high: count.describe('and this.'),
})

export const unknownReasons = [
  'no_edge',
  'link_unknown',
  'no_devices',
  'few_boots',
  'few_warm_boots',
  'no_cold_boots',
] as const

const ofVersion = z.object({
  versionId: uuid,
  number: count,
  bootCount: count.describe('Ready boots at the site that had its link nearly to themselves, of the newest 60.'),
  unknownBecause: z
    .enum(unknownReasons)
    .nullable()
    .describe(
      `Why there is no prediction; null: there is one. \`few_boots\`: fewer than ${bootsMin} boots without others; \`few_warm_boots\`: too few of them from the edge’s memory; \`no_cold_boots\`: none that waited for a disk of the edge; \`no_devices\`: none boots the vDisk at the site.`,
    ),
  storm: z
    .object({
      p50Us: range.describe('Half of the devices are ready within this time of their start.'),
      p95Us: range.describe('19 of 20 devices are.'),
      lastUs: range.describe('From the first start until the last device is ready.'),
      linkShare: z
        .number()
        .min(0)
        .max(1)
        .describe('The most that an edge’s link is used in a second, of what it carries in practice.'),
      bytes: count.describe('What the edges send, on the wire.'),
      limitedBy: z.enum(limitNames).describe('`device`: the devices’ own time.'),
      parts: z
        .object({
          aloneUs: count.describe('What it takes without others.'),
          sharedUs: count.describe('What it waits because others use the link or the edge’s processors.'),
          storageUs: count.describe('What it waits for a disk of the edge.'),
        })
        .describe('Of the mean boot.'),
    })
    .nullable()
    .describe('Null: too little is known.'),
})
export type PredictionOfVersion = z.infer<typeof ofVersion>

export const predictionView = z
  .object({
    siteId: uuid,
    siteName: z.string(),
    devices: count.describe('That boot.'),
    startsPerSecond: z.number().nullable().describe('Null: all start at once.'),
    reads: z.enum(['warm', 'cold']).describe('What the edges’ memory holds of the version: all, or nothing.'),
    edges: count.describe('Edges among which the devices are spread evenly.'),
    linkMbps: count.nullable().describe('Of the slowest edge; null: no edge reports it.'),
    isLinkGiven: z.boolean().describe('By the request, and not by the edges.'),
    stormBoots: count.describe(
      'Boots of storms at the site from which the sharing of the link is known; 0: it is assumed, and intervals are wide.',
    ),
    isProcessorKnown: z.boolean().describe('What the edges’ processors carry is known from their load.'),
    version: ofVersion.describe('The version that was asked about.'),
    current: ofVersion
      .nullable()
      .describe('The version that production devices boot; null: it is the same one, or none.'),
  })
  .meta({ id: 'Prediction' })
export type PredictionView = z.infer<typeof predictionView>
