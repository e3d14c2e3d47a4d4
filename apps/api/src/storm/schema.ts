import { bootPhases } from '@bootfarm/proto/boot-phases'
import { z } from 'zod'
import { count, instant, uuid } from '../rules/scalars.ts'

/** More devices are no cells that a person tells apart; the answer stays below 500 KB. */
export const stormDevicesMax = 5_000
export const stormMinutesDefault = 60
const minutesMax = 24 * 60
/** An id in base64url, without padding. */
export const packedIdLength = 22
export const packedMacLength = 12

export const stormInput = z.object({
  farmId: uuid.optional().describe('Only devices of this farm; the whole organization without any of these.'),
  siteId: uuid.optional().describe('Only devices of this site.'),
  collectionId: uuid.optional().describe('Only devices of this collection.'),
  runId: uuid.optional().describe('The devices of this run of a schedule, each with its boot in the run.'),
  minutes: count
    .min(1)
    .max(minutesMax)
    .default(stormMinutesDefault)
    .describe('How far back a boot counts. A run counts from its start, whatever this is.'),
})

/**
 * What a cell shows: the phase of a boot in progress, the outcome of one that is over, or why there is no boot:
 * `idle`: no boot in the time; `queued`: a power-on is requested; `skipped`: the run left the device out.
 */
export const stormStates = [
  'idle',
  'queued',
  'skipped',
  ...bootPhases,
  'failed',
  'silent',
  'no_response',
  'superseded',
  'local_disk',
] as const
export type StormState = (typeof stormStates)[number]

const named = z.object({ id: uuid, name: z.string() })
/** Of a second: nobody sees less on a map of boots, and each digit is there 5,000 times. */
const tenths = z.number().int()

/** Everything of one index is of one device. */
const stormCells = z.object({
  names: z.array(z.string()).describe('By site, then by name; of an unregistered machine its MAC address.'),
  unregistered: z.array(count).describe('The indices of machines that nobody has registered.'),
  macs: z
    .string()
    .describe(`The MAC addresses of the devices one after the other: ${packedMacLength} hexadecimal digits each.`),
  ids: z
    .string()
    .describe(
      `The ids of their boots in the time, of the device itself where there is none: each 16 bytes as ${packedIdLength} characters of base64url.`,
    ),
  states: z.array(count).describe('Index into `states`.'),
  kinds: z.array(z.number().int()).describe('Index into `kinds`; -1: nothing is known of what the device boots.'),
  startedTenths: z
    .array(tenths.nullable())
    .describe('Start of the boot, in tenths of a second since `since`; null: there is no boot in the time.'),
  tookTenths: z
    .array(count)
    .describe('From the start of the boot to the end of its last known phase; its whole length once it is over.'),
  phaseTenths: z
    .array(count)
    .describe('Start of the phase in progress, since the start of the boot; 0 once it is over.'),
})

const stormKind = z.object({
  name: z.string().describe('The vDisk and its version.'),
  basis: z
    .enum(['storm', 'history'])
    .nullable()
    .describe('`storm`: boots of these devices; `history`: the last boots of the version before; null: too few.'),
  readyCount: count.describe('Count of the boots that the medians are of.'),
  p50Ms: count.nullable().describe('Median from start to ready; null: fewer than five boots are known.'),
  phaseP50Ms: z.record(z.string(), count).describe('Median length of each phase of the same boots.'),
})
export type StormKind = z.infer<typeof stormKind>

const stormEdge = named.extend({
  siteName: z.string(),
  online: z.boolean(),
  bootingCount: count.describe('Count of these boots that are in progress there.'),
  bytesPerSecond: count.describe(
    'Of these boots over the last minute: edges report the bytes of a phase, which are spread evenly over the boot.',
  ),
})

export const storm = z
  .object({
    farm: named.nullable().describe('Null: not only one farm.'),
    site: named.nullable().describe('Null: not only one site.'),
    collection: named.nullable().describe('Null: not only one collection.'),
    run: named
      .extend({ scheduleId: uuid, instant, state: z.string(), ratePerMinute: count })
      .nullable()
      .describe('By the name of its schedule.'),
    at: instant.describe('When this was read.'),
    since: instant.describe('Boots that started then or later count.'),
    deviceCount: count.describe(`With more than ${stormDevicesMax}, cells are those whose last boot started last.`),
    states: z
      .array(z.enum(stormStates))
      .describe('The phase of a boot in progress, the outcome of one that is over, or why there is none.'),
    cells: stormCells.describe('Columns: everything of one index is of one device.'),
    sites: z
      .array(named.extend({ deviceCount: count }))
      .describe('The sites of these devices, in their order: the first cells are those of the first site.'),
    kinds: z.array(stormKind).describe('What these devices boot, and how long it usually takes.'),
    edges: z.array(stormEdge).describe('The edges of these boots, the busiest first; at most 50.'),
  })
  .meta({ id: 'Storm' })
export type Storm = z.infer<typeof storm>
export type StormInput = z.output<typeof stormInput>
