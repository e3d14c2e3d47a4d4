import { bootCauses } from '@bootfarm/proto/boot-phases'
import { z } from 'zod'
import { timeOfDay } from '../placement/schema.ts'
import { instantOf, listSort } from '../rules/list-sort.ts'
import { pageInput, pageOf, timeZone } from '../rules/object-fields.ts'
import { count, instant, uuid } from '../rules/scalars.ts'
import { burnWindows } from './watch/burn-rate.ts'

/** Open at once in an organization; further ones are not opened before some have closed. */
export const openAlertsMax = 200

export const alertKinds = ['objective', 'failures'] as const

/** Silent boots have no cause of their own. */
export const alertCauses = [...bootCauses, 'silent'] as const

export const objectiveFigures = z.object({
  window: z.enum(burnWindows).describe('The time of these figures: the last hour or the last six hours.'),
  boots: count.describe('Boots of this time whose result is known.'),
  missed: count.describe('Those that failed, or were not ready in time.'),
  burnRate: z.number().describe('How many times faster than allowed boots miss the objective.'),
  burnLimit: z.number().describe('From this burn rate on, an alert opens.'),
  percent: z.number().describe('The objective: this share of boots is to be ready in time.'),
  seconds: count.describe('The time within which a boot is to be ready.'),
  days: count.describe('The time over which the share counts.'),
})
export type ObjectiveFigures = z.infer<typeof objectiveFigures>

export const failureFigures = z.object({
  minutes: count.describe('The time of these figures.'),
  boots: count.describe('Boots of this time that failed of the cause.'),
  devices: count.describe('Devices of these boots.'),
  placeBoots: count.describe('All boots of the site, or of the collection, in this time.'),
  usualPercent: z
    .number()
    .describe(
      'The share of the boots of the site, or of the collection, that failed of this cause in the week before.',
    ),
})
export type FailureFigures = z.infer<typeof failureFigures>

export const alertSort = listSort({ openedAt: instantOf('openedAt') }, '-openedAt')
export const alertListInput = z.object({
  ...pageInput,
  sort: alertSort.input,
  state: z.enum(['open', 'closed']).optional().describe('Only open alerts, or only closed ones.'),
  kind: z.enum(alertKinds).optional().describe('Only alerts of this kind.'),
  siteId: uuid.optional().describe('Alerts of the site and of its collections.'),
  collectionId: uuid.optional(),
})
export const alertInput = z.object({ alertId: uuid })
export const acknowledgeAlertInput = z.object({
  alertId: uuid,
  acknowledged: z.boolean().describe('False takes an acknowledgement back.'),
})

export const alertView = z
  .object({
    id: uuid,
    kind: z
      .enum(alertKinds)
      .describe('`objective`: too many boots miss the objective of a place; `failures`: many fail of one cause.'),
    title: z.string().describe('One sentence for people.'),
    farmId: uuid,
    siteId: uuid,
    siteName: z.string(),
    collectionId: uuid.nullable().describe('Null: it is about the whole site.'),
    collectionName: z.string().nullable(),
    cause: z
      .enum(alertCauses)
      .nullable()
      .describe('The cause of failed boots, `silent` if boots fell silent; null for an objective.'),
    bootCount: count.describe('Boots since `firstAt`; it grows while the alert is open.'),
    firstAt: instant.describe('When the first of them started.'),
    lastAt: instant.describe('When the last of them started.'),
    openedAt: instant.describe('When it opened.'),
    closedAt: instant.nullable().describe('Null while it is open. Alerts close by themselves.'),
    acknowledgedAt: instant.nullable().describe('When somebody acknowledged it; null if nobody did.'),
    acknowledgedByName: z.string().nullable().describe('Who acknowledged it.'),
    objective: objectiveFigures.nullable().describe('Figures of an objective, as of the last evaluation.'),
    failures: failureFigures.nullable().describe('Figures of failures, as of the last evaluation.'),
    boots: z
      .string()
      .describe('The evidence: the path of the dashboard’s page with these boots.')
      .meta({ examples: ['/boots?site=0b3f6a52-6c0f-4b1d-8a57-3f1de5a0c701&cause=tftp_timeout'] }),
  })
  .meta({ id: 'Alert' })
export type AlertView = z.infer<typeof alertView>
export const alertPage = pageOf(alertView)

export const openCausesView = z
  .object({
    causes: z
      .array(
        z.object({
          cause: z.enum(alertCauses).describe('The cause of failed boots; `silent` if boots fell silent.'),
          sentence: z.string().describe('What happens, for people.'),
          bootCount: count.describe('Boots of the open alerts, each once.'),
          places: z
            .array(
              z.object({
                alertId: uuid,
                siteId: uuid,
                siteName: z.string(),
                collectionId: uuid.nullable().describe('Null: the alert is about the whole site.'),
                collectionName: z.string().nullable(),
                bootCount: count.describe('Boots of the alert.'),
              }),
            )
            .describe('Each has an open alert of the cause; the most boots first.'),
          boots: z.string().describe('The path of the dashboard’s page with the boots of the cause.'),
        }),
      )
      .describe('By the number of boots, the most first.'),
  })
  .meta({ id: 'OpenCauses' })
export type OpenCausesView = z.infer<typeof openCausesView>

export const openAlertCount = z
  .object({
    count: count.max(openAlertsMax).describe('Open alerts.'),
    unacknowledged: count.describe('Those that nobody has acknowledged.'),
  })
  .meta({ id: 'AlertCount' })

const quietHours = z
  .object({
    from: timeOfDay.describe('From this time of day on no mail is sent.'),
    to: timeOfDay
      .describe('Then one mail has all that was held; earlier than `from`: on the next day.')
      .meta({ examples: ['06:00'] }),
  })
  .refine(({ from, to }) => from !== to, 'Quiet hours end when they begin. Leave them out to get mails at any time.')

const subscribedFields = {
  quietHours: quietHours.nullable().describe('Null: mails are sent at any time.'),
  timeZone: timeZone
    .describe('The zone of the quiet hours, and of times in mails.')
    .meta({ examples: ['Europe/Berlin'] }),
}
export const subscribeInput = z.object({
  subscription: z.object(subscribedFields).nullable().describe('Null: you get no mails of alerts.'),
})
export const subscriptionView = z.object({
  email: z.string().describe('Where mails are sent.'),
  subscription: z
    .object({
      quietHours: z.object({ from: z.string(), to: z.string() }).nullable(),
      timeZone: z.string(),
    })
    .nullable()
    .describe('Null: you get no mails of alerts.'),
})
export type SubscriptionView = z.infer<typeof subscriptionView>
