import { z } from 'zod'
import { pageInput } from '../rules/object-fields.ts'
import { count, instant, uuid } from '../rules/scalars.ts'
import { webhookEventTypes } from '../webhook/schema.ts'

/** Both orders are those of the numbers. */
const eventSorts = ['number', '-number'] as const
export type EventSort = (typeof eventSorts)[number]
export const eventSort = z.enum(eventSorts)

export const eventListInput = z.object({
  ...pageInput,
  sort: eventSort
    .default('-number')
    .describe('`number`: in the order in which the events became known, to catch up; `-number`: newest first.'),
  types: z
    .array(z.enum(webhookEventTypes))
    .min(1)
    .max(webhookEventTypes.length)
    .optional()
    .describe('Only events of these types. Give the parameter once for each.'),
  since: instant.optional().describe('Only events with this `timestamp` or a later one.'),
  until: instant.optional().describe('Only events with an earlier `timestamp`.'),
  farmId: uuid.optional(),
  siteId: uuid.optional(),
  collectionId: uuid.optional(),
  deviceId: uuid.optional(),
  edgeId: uuid.optional(),
  vdiskId: uuid.optional(),
})
export const eventInput = z.object({ eventId: uuid })

const idOrNull = uuid.nullable()

export const eventView = z
  .object({
    id: uuid.describe('Also the `webhook-id` of its messages.'),
    number: count.describe('Position in the list: 1 for the first event of the organization.'),
    type: z
      .string()
      .describe('A type that webhooks subscribe to. Later releases have further types: ignore what you do not know.')
      .meta({ examples: ['boot.failed'] }),
    timestamp: instant.describe('When it happened.'),
    organizationId: uuid.describe('The organization, as in its messages.'),
    farmId: idOrNull.describe('The farm that it happened in; null where none is known.'),
    siteId: idOrNull.describe('The site that it happened in; null if it concerns the whole farm.'),
    collectionId: idOrNull.describe("The device's collection at that time; null if it concerns no single device."),
    deviceId: idOrNull.describe('The device that it concerns; null if it concerns no single one.'),
    edgeId: idOrNull.describe('The edge that it concerns; null if it concerns none.'),
    vdiskId: idOrNull.describe('The vDisk that it concerns; null if it concerns none.'),
    data: z
      .record(z.string(), z.unknown())
      .describe('The same as in its messages, by its type. Texts in `untrusted` come from a device.')
      .meta({
        examples: [
          {
            bootId: '0b3f6a52-6c0f-4b1d-8a57-3f1de5a0c701',
            deviceName: 'room-101-pc-01',
            phase: 'nbp',
            cause: 'tftp_timeout',
            untrusted: { text: 'no answer' },
          },
        ],
      }),
  })
  .meta({ id: 'Event' })
export type EventView = z.infer<typeof eventView>

export const eventPage = z
  .object({
    items: z.array(eventView),
    nextCursor: z.string().nullable(),
    resumeCursor: z
      .string()
      .describe(
        'Keep it, and pass it later as `cursor` with `sort=number`: the list then continues with what became known after this page. Of a list that is read newest first, keep that of the first page.',
      ),
  })
  .meta({ id: 'EventPage' })
