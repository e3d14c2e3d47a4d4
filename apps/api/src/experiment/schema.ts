import { z } from 'zod'
import { bootSettingNames, conditionNames, isValueOf, valuesOf } from '../rules/boot-settings.ts'
import { instantOf, listSort } from '../rules/list-sort.ts'
import { objectName, pageInput, pageOf, seenRevision } from '../rules/object-fields.ts'
import { count, instant, uuid } from '../rules/scalars.ts'
import { type Cell, cellsOf } from './plan-experiment.ts'

const devicesMax = 64
const factorsMax = 4
const valuesMax = 12
export const cellsMax = 64
const repetitionsMax = 100
/** What the page of an experiment reads and judges at once. */
export const bootsMax = 2000
/** A week. */
const hoursMax = 168

export const experimentStates = ['running', 'paused', 'done', 'stopped'] as const
export const trialStates = ['waiting', 'ordered', 'booting', 'ready', 'failed', 'dropped'] as const
export type TrialStateName = (typeof trialStates)[number]

const settingName = z.enum(bootSettingNames)
const factor = z
  .object({
    setting: settingName,
    values: z
      .array(z.string().max(32).nullable())
      .min(1, 'Give each factor at least one value.')
      .max(valuesMax, `A factor can have at most ${valuesMax} values.`)
      .describe('The values to compare; null is what the device has without the experiment.'),
  })
  .superRefine(({ setting, values }, { addIssue }) => {
    const wrong = values.find((value) => value !== null && !isValueOf(setting, value))
    if (wrong !== undefined) addIssue({ code: 'custom', message: `${setting} takes ${valuesOf(setting)}.` })
  })

export const factors = z
  .array(factor)
  .min(1, 'Choose at least one setting to vary.')
  .max(factorsMax, `An experiment can vary at most ${factorsMax} settings.`)
  .refine((all) => new Set(all.map(({ setting }) => setting)).size === all.length, 'Each setting can be varied once.')
  .describe('What is varied. Every combination of the values is a cell.')
  .meta({ examples: [[{ setting: 'read-limit', values: [null, '32k'] }]] })

export const createExperimentInput = z
  .object({
    siteId: uuid,
    name: objectName,
    deviceIds: z
      .array(uuid)
      .min(1, 'Select at least one device.')
      .max(devicesMax, `An experiment can have at most ${devicesMax} devices.`)
      .refine((ids) => new Set(ids).size === ids.length, 'Each device can be selected once.')
      .describe('Devices of the site. They restart for each boot.'),
    factors,
    repetitions: count
      .min(1, 'Each cell needs at least one boot.')
      .max(repetitionsMax, `Each cell can have at most ${repetitionsMax} boots of a device.`)
      .describe('Boots of each device with each cell.'),
    atOnce: count
      .min(1)
      .max(devicesMax)
      .describe('Devices that boot at the same time. With a cold or warm cache it is one: others would warm it.'),
    bootSeconds: count
      .min(30, 'Give a boot at least 30 seconds.')
      .max(1800, 'Give a boot at most 1800 seconds.')
      .default(300)
      .describe('A boot that is not ready by then has failed.'),
    hours: count
      .min(1)
      .max(hoursMax, `An experiment can last at most ${hoursMax} hours.`)
      .default(12)
      .describe('The experiment ends after so many hours at the latest, and no device keeps its settings.'),
  })
  .superRefine(({ deviceIds, factors: all, repetitions, atOnce }, { addIssue }) => {
    const cells = cellsOf(all).length
    const boots = cells * deviceIds.length * repetitions
    if (cells < 2)
      addIssue({ code: 'custom', path: ['factors'], message: 'This is one cell: give a setting a second value.' })
    else if (cells > cellsMax)
      addIssue({ code: 'custom', path: ['factors'], message: tooMany(cells, 'cells', cellsMax) })
    else if (boots > bootsMax)
      addIssue({ code: 'custom', path: ['repetitions'], message: tooMany(boots, 'boots', bootsMax) })
    if (atOnce > 1 && all.some(({ setting }) => conditionNames.includes(setting)))
      addIssue({
        code: 'custom',
        path: ['atOnce'],
        message: 'With a cold or warm cache, boot one device at a time: others would warm it.',
      })
  })
export type CreateExperiment = z.output<typeof createExperimentInput>

function tooMany(is: number, what: string, most: number): string {
  return `These are ${is.toLocaleString('en')} ${what}; an experiment can have at most ${most.toLocaleString('en')}.`
}

export const experimentInput = z.object({ experimentId: uuid })
export const experimentChangeInput = z.object({ experimentId: uuid, revision: seenRevision })
export const applyExperimentInput = experimentChangeInput.extend({
  cell: count
    .max(cellsMax)
    .describe('The cell whose settings the collections of its devices get, such as the recommended one.'),
})
export const experimentSort = listSort({ createdAt: instantOf('createdAt') }, '-createdAt')
export const experimentListInput = z.object({
  ...pageInput,
  sort: experimentSort.input,
  siteId: uuid.optional(),
  state: z.enum(experimentStates).optional().describe('Only experiments in this state.'),
})

const experimentSummary = z
  .object({
    id: uuid,
    name: z.string(),
    farmId: uuid,
    siteId: uuid,
    siteName: z.string(),
    state: z.enum(experimentStates),
    reason: z.string().nullable().describe('Why it was stopped or ended early; null if it was not.'),
    factors: z.array(z.object({ setting: settingName, values: z.array(z.string().nullable()) })),
    cellCount: count.describe('Combinations of settings.'),
    deviceCount: count,
    repetitions: count,
    counts: z.record(z.enum(trialStates), count).describe('Boots by their state.'),
    createdByName: z.string(),
    createdAt: instant,
    endsAt: instant.describe('From then on no boot gets its settings.'),
    endedAt: instant.nullable(),
    revision: count,
  })
  .meta({ id: 'ExperimentSummary' })
export type ExperimentSummary = z.infer<typeof experimentSummary>
export const experimentPage = pageOf(experimentSummary)

const difference = z.object({
  us: z.number().describe('Microseconds; below 0: boots of this cell are ready sooner.'),
  lowUs: z.number().describe('The true difference is above this, with all cells of the experiment 19 times of 20.'),
  highUs: z.number().describe('The true difference is below this.'),
  isClear: z.boolean().describe('The interval does not hold 0.'),
  chance: z
    .number()
    .describe('How often chance alone makes a difference as large, times the number of compared cells; at most 1.'),
})

const experimentCell = z.object({
  settings: z.array(z.string()).describe('`name=value`; empty: what devices have without the experiment.'),
  title: z.string().describe('The settings for people.'),
  reference: count.describe('Index of the cell with which it is compared; its own index for such a cell.'),
  readyCount: count,
  failedCount: count.describe('Boots that failed, fell silent or took too long.'),
  droppedCount: count.describe('Boots that count for nothing: they had other settings, or were interrupted.'),
  medianUs: z.number().nullable().describe('Median time until ready, of ready boots.'),
  p95Us: z.number().nullable(),
  phasesUs: z.record(z.string(), z.number()).describe('Median of each phase, in microseconds.'),
  pairCount: count.describe('Pairs of a boot of this cell and one of its reference: same device, same repetition.'),
  difference: difference.nullable().describe('Null for a reference, and with too few pairs.'),
  failsMore: z.boolean().describe('It fails clearly more often than its reference.'),
})
export type ExperimentCell = z.infer<typeof experimentCell>

const recommendation = z.object({
  kind: z
    .enum(['apply', 'keep', 'wait'])
    .describe('`apply`: a cell is clearly faster; `keep`: none is; `wait`: the experiment is not over.'),
  cell: count.nullable().describe('The recommended cell; null if there is none.'),
  sentence: z.string().describe('One sentence for people.'),
})

export const experimentDetail = experimentSummary
  .extend({
    devices: z
      .array(z.object({ id: uuid, name: z.string(), collectionId: uuid, collectionName: z.string() }))
      .describe('Devices in the trash are left out.'),
    cells: z.array(experimentCell),
    pairsNeeded: count.describe('Pairs that a cell needs for an interval.'),
    recommendation,
    applied: z
      .object({ cell: count, at: instant, byName: z.string() })
      .nullable()
      .describe('The cell that was applied last; null: none was.'),
    atOnce: count,
    bootSeconds: count,
  })
  .meta({ id: 'Experiment' })
export type ExperimentDetail = z.infer<typeof experimentDetail>

export const trialListInput = z.object({
  ...pageInput,
  experimentId: uuid,
  cell: count.max(cellsMax).optional().describe('Only boots of this cell.'),
  state: z.enum(trialStates).optional().describe('Only boots in this state.'),
})
const trialView = z
  .object({
    trialId: uuid.describe('Identifies the trial: the boot’s report names it.'),
    deviceId: uuid,
    deviceName: z.string(),
    repetition: count.describe('From 0.'),
    cell: count,
    title: z.string().describe('The settings of its cell for people.'),
    state: z.enum(trialStates),
    reason: z.string().nullable().describe('Why it failed or counts for nothing; null if it does not.'),
    bootId: uuid.nullable().describe('Null until its boot has begun.'),
    durationUs: z.number().nullable().describe('Time until ready; null if it is not.'),
    endedAt: instant.nullable(),
  })
  .meta({ id: 'ExperimentTrial' })
export type TrialView = z.infer<typeof trialView>
export const trialPage = pageOf(trialView)

export function cellsOfJson(json: unknown): Cell[] {
  return z.array(z.array(z.string())).parse(json)
}

export function factorsOfJson(json: unknown): ExperimentSummary['factors'] {
  return experimentSummary.shape.factors.parse(json)
}
