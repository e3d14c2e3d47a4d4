import { listedOutcomes } from '@bootfarm/proto/boot-phases'
import { z } from 'zod'
import { instant, uuid } from '../rules/scalars.ts'

export const searchKinds = ['device', 'boot', 'vdisk', 'version', 'site', 'edge', 'collection', 'person'] as const
export type SearchKind = (typeof searchKinds)[number]

export const searchTextMax = 64

export const searchInput = z.object({
  search: z
    .string()
    .trim()
    .min(1, 'Enter what to search for.')
    .max(searchTextMax, `A search can have at most ${searchTextMax} characters.`)
    .refine((text) => !/\p{C}/u.test(text), 'A search cannot contain control characters.')
    .describe(
      'The beginning of a name or of a later word in it, of a MAC address (or of its last two or three bytes), an IP address, a tag, a label, an e-mail address, or 8 or more digits of an id or a machine’s UUID. Upper and lower case are the same. A vDisk’s name with a number finds that version.',
    ),
  kinds: z.array(z.enum(searchKinds)).min(1).optional().describe('Only objects of these kinds.'),
  limit: z.number().int().min(1).max(100).default(5).describe('The most objects of each kind.'),
})

const searchHit = z
  .object({
    id: uuid,
    name: z.string().describe('For a boot the name of its device, or the MAC address of an unregistered one.'),
    place: z.string().nullable().describe('Names of what it belongs to; null for a person.'),
    match: z
      .object({
        field: z.enum(['mac', 'ip', 'id', 'machineId', 'tag', 'label', 'email']),
        value: z.string(),
      })
      .nullable()
      .describe('What was found if it is not the name.'),
    vdiskId: uuid.nullable().describe('Of a version; otherwise null.'),
    boot: z
      .object({
        startedAt: instant,
        outcome: z.enum(listedOutcomes).nullable().describe('Null while the boot lasts.'),
      })
      .nullable()
      .describe('Of a boot; otherwise null.'),
  })
  .meta({ id: 'SearchHit' })
export type SearchHit = z.infer<typeof searchHit>

export const searchResult = z
  .object({
    groups: z
      .array(
        z.object({
          kind: z.enum(searchKinds),
          items: z.array(searchHit).describe('The best first.'),
          hasMore: z.boolean().describe('There are others: the search can be longer, or `limit` higher.'),
        }),
      )
      .describe('Kinds of which something was found, the best first.'),
  })
  .meta({ id: 'SearchResult' })
export type SearchResult = z.infer<typeof searchResult>
