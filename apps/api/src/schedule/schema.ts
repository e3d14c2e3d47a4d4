import type { scheduleResults } from '@bootfarm/proto/uplink'
import { powerMethods, ratePerMinuteMax } from '@bootfarm/proto/uplink'
import { z } from 'zod'
import { instantOf, listSort, text } from '../rules/list-sort.ts'
import { nameOf, pageInput, pageOf, searchInput, seenRevision, tag } from '../rules/object-fields.ts'
import { count, instant, uuid } from '../rules/scalars.ts'
import { traceparentField } from '../rules/traceparent-field.ts'
import { isTimeZone, problemOf } from './schedule-times.ts'

/** Per farm: the limit of a desired state. */
export const schedulesPerFarmMax = 256
const targetsPerScheduleMax = 200

const scheduleName = nameOf('Enter a name for the schedule.')

const scheduleWhen = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('once'),
    at: z
      .string()
      .regex(
        /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?$/,
        'Enter a date and a time of day, for example 2026-12-24T06:30.',
      )
      .describe('In the zone.'),
  }),
  z.object({
    kind: z.literal('cron'),
    expression: z.string().trim().min(1, 'A cron expression has five fields.').max(120),
  }),
])

const scheduleTarget = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('device'), deviceId: uuid }),
  z.object({ kind: z.literal('collection'), collectionId: uuid }),
  z.object({ kind: z.literal('tag'), tag }),
])
export type ScheduleTarget = z.infer<typeof scheduleTarget>

const timing = {
  when: scheduleWhen,
  timeZone: z.string().max(64).refine(isTimeZone, 'This is not an IANA time zone name.'),
}
const targets = z
  .array(scheduleTarget)
  .max(targetsPerScheduleMax, `A schedule can name at most ${targetsPerScheduleMax} devices, collections and tags.`)

interface Timing {
  when: z.infer<typeof scheduleWhen>
  timeZone: string
}
/** After its fields are known to be right one by one. */
function checkTiming({ when, timeZone }: Timing, context: z.RefinementCtx): void {
  const message = problemOf(when, timeZone)
  if (message) context.addIssue({ code: 'custom', path: ['when'], message })
}

const scheduleFields = {
  name: scheduleName,
  siteId: uuid.nullable().describe('Null: all sites of the farm.'),
  power: z.enum(powerMethods),
  ratePerMinute: count
    .min(1, 'Enter at least one device per minute.')
    .max(ratePerMinuteMax, `Enter at most ${ratePerMinuteMax} devices per minute.`),
  ...timing,
  targets: targets.min(1, 'Select at least one device, collection or tag.'),
}
export const createScheduleInput = z
  .object({ farmId: uuid, enabled: z.boolean().default(true), ...scheduleFields })
  .superRefine(checkTiming)
export const updateScheduleInput = z
  .object({ scheduleId: uuid, revision: seenRevision, ...scheduleFields })
  .superRefine(checkTiming)
export type ScheduleFields = Pick<z.output<typeof createScheduleInput>, keyof typeof scheduleFields>

export const scheduleGetInput = z.object({ scheduleId: uuid })
export const runNowInput = scheduleGetInput.extend({ traceparent: traceparentField })
export const scheduleChangeInput = z.object({ scheduleId: uuid, revision: seenRevision })
export const enableScheduleInput = scheduleChangeInput.extend({ enabled: z.boolean() })
export const scheduleSort = listSort(
  { name: text('name'), createdAt: instantOf('createdAt'), updatedAt: instantOf('updatedAt') },
  'name',
)
export const scheduleListInput = z.object({
  ...pageInput,
  sort: scheduleSort.input,
  farmId: uuid.optional(),
  siteId: uuid.optional(),
  enabled: z.boolean().optional(),
  ...searchInput,
})

/**
 * Reasons for which a device or a run was left out, as the control plane and the edges of its release give them. The
 * fields below are texts, because a newer edge may have further reasons.
 */
export type ScheduleReason =
  | Exclude<(typeof scheduleResults)[number], 'sent'>
  | 'nothing_to_boot'
  | 'stopped'
  | 'no_answer'
  | 'no_boot'
  | 'not_reported'
  | 'edge_away'
  | 'not_ended'
  | 'action_unknown'
  | 'too_many'

/** `away`: not heard for ten minutes; `not_reported`: heard, but silent about the run until its time was over. */
const missingEdgeStates = ['away', 'not_reported', 'waiting', 'running'] as const
const runStates = ['waiting', 'running', 'done', 'missed', 'stopped'] as const
const runDeviceStates = ['waiting', 'sent', 'booting', 'ready', 'failed', 'not_seen', 'skipped'] as const

const runSummary = z
  .object({
    id: uuid,
    scheduleId: uuid,
    scheduleName: z.string(),
    instant,
    state: z
      .enum(runStates)
      .describe('`done`: each edge has reported or is away, and each device has a result: the figures are final.'),
    reason: z.string().nullable(),
    byHand: z.boolean(),
    startedAt: instant.nullable(),
    endedAt: instant.nullable(),
    deviceCount: count,
    counts: z.record(z.enum(runDeviceStates), count),
  })
  .meta({ id: 'ScheduleRunSummary' })
export type RunSummary = z.infer<typeof runSummary>
export const runPage = pageOf(runSummary)

const scheduleSummary = z
  .object({
    id: uuid,
    farmId: uuid,
    farmName: z.string(),
    siteId: uuid.nullable(),
    siteName: z.string().nullable(),
    name: z.string(),
    enabled: z.boolean(),
    power: z.enum(powerMethods),
    ratePerMinute: count,
    when: scheduleWhen,
    timeZone: z.string(),
    nextInstant: instant.nullable().describe('Null: it does not run any more, or is switched off.'),
    lastRun: runSummary.nullable(),
    revision: count,
  })
  .meta({ id: 'ScheduleSummary' })
export type ScheduleSummary = z.infer<typeof scheduleSummary>
export const schedulePage = pageOf(scheduleSummary)

export const scheduleDetail = scheduleSummary
  .extend({
    targets: z.array(
      z.discriminatedUnion('kind', [
        z.object({ kind: z.literal('device'), deviceId: uuid, name: z.string(), siteName: z.string() }),
        z.object({ kind: z.literal('collection'), collectionId: uuid, name: z.string(), siteName: z.string() }),
        z.object({ kind: z.literal('tag'), tag: z.string() }),
      ]),
    ),
    knownUntil: instant
      .nullable()
      .describe('Edges with this state can continue until then without the control plane; null: it is off or over.'),
    wrongClocks: z
      .array(z.object({ edgeId: uuid, name: z.string(), offsetMs: z.number() }))
      .describe('Edges whose clock is more than a minute off: their runs begin so much early or late.'),
    withheldAt: z
      .array(z.object({ siteId: uuid, siteName: z.string(), namedCount: count, limit: count }))
      .describe('Sites whose edges do not get it: older schedules name as many devices as they accept.'),
    createdAt: instant,
    updatedAt: instant,
  })
  .meta({ id: 'Schedule' })
export type ScheduleDetail = z.infer<typeof scheduleDetail>

/** Previews a schedule with these fields, also if it is not saved. */
export const previewInput = z
  .object({ farmId: uuid, siteId: uuid.nullable(), ...timing, targets })
  .superRefine(checkTiming)
export const schedulePreview = z
  .object({
    instants: z
      .array(
        z.object({
          at: instant,
          local: z.string().describe("`YYYY-MM-DDTHH:MM` in the schedule's zone."),
          note: z.enum(['moved', 'first_of_two', 'second_of_two']).nullable(),
        }),
      )
      .describe('The next ten at most.'),
    deviceCount: count,
    skippedCount: count.describe('How many of them a run would skip.'),
    knownUntil: instant.nullable().describe('Edges continue without the control plane until then.'),
  })
  .meta({ id: 'SchedulePreview' })

export const runSort = listSort({ instant: instantOf('instant') }, '-instant')
export const runsInput = z.object({ ...pageInput, sort: runSort.input, scheduleId: uuid })
export const runGetInput = z.object({ runId: uuid })
export const runDetail = runSummary
  .extend({
    farmId: uuid,
    timeZone: z.string(),
    power: z.enum(powerMethods),
    ratePerMinute: count,
    edges: z
      .object({
        all: count.describe('Edges that the run waits for, or waited for.'),
        reported: count.describe('Edges that have reported the end of the run.'),
        missing: z
          .array(
            z.object({
              edgeId: uuid,
              name: z.string(),
              siteName: z.string(),
              state: z.enum(missingEdgeStates),
              since: instant.describe('Since when; of an edge that is away: when it was last heard.'),
            }),
          )
          .describe('The others, those that are away first; at most 50.'),
      })
      .describe('A run is done when each of its edges has reported its end, or is away.'),
  })
  .meta({ id: 'ScheduleRun' })
export type RunDetail = z.infer<typeof runDetail>

export const runDevicesInput = z.object({
  ...pageInput,
  runId: uuid,
  state: z.enum(runDeviceStates).optional(),
})
const runDevice = z
  .object({
    deviceId: uuid,
    name: z.string().nullable().describe('Null: it was deleted since.'),
    siteName: z.string().nullable(),
    position: count,
    state: z.enum(runDeviceStates),
    reason: z.string().nullable(),
    text: z.string().nullable().describe('Output of the power command: untrusted.'),
    sentAt: instant.nullable(),
    boot: z.object({ id: uuid, startedAt: instant, outcome: z.string().nullable(), totalUs: count }).nullable(),
  })
  .meta({ id: 'ScheduleRunDevice' })
export type RunDevice = z.infer<typeof runDevice>
export const runDevicePage = pageOf(runDevice)

export const runStarted = z.object({ runId: uuid }).meta({ id: 'StartedScheduleRun' })
