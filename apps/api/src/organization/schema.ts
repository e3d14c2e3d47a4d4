import { z } from 'zod'
import { seenRevision } from '../rules/object-fields.ts'
import { nameInput } from '../rules/person.ts'
import { quotaView } from '../rules/quotas.ts'

export const emptyInput = z.object({})

export const organizationView = z
  .object({
    id: z.uuid(),
    name: z.string(),
    slug: z.string().describe('For settings that name an organization; it stays when the name changes.'),
    revision: z.number().int(),
    createdAt: z.iso.datetime(),
    suspendedAt: z.iso.datetime().nullable().describe('Since when nothing can be changed; null while it can.'),
    deleteAfter: z.iso.datetime().nullable().describe('When it will be deleted; null while nobody has requested that.'),
    deleteAskedAt: z.iso.datetime().nullable(),
    deletionGraceDays: z.number().int(),
    contact: z.string().nullable().describe('The operator of the installation; null if none is named.'),
  })
  .meta({ id: 'Organization' })

export const renameOrganizationInput = z.object({ name: nameInput, revision: seenRevision })
export const usageView = z.object({ quotas: z.array(quotaView) }).meta({ id: 'OrganizationUsage' })

export const signingKeysView = z
  .object({
    keys: z
      .array(
        z.object({
          id: z.uuid(),
          publicKey: z.string(),
          createdAt: z.iso.datetime(),
          isNewest: z.boolean(),
          edgeCount: z.number().int().describe('Edges whose last desired state, as far as reported, is signed by it.'),
        }),
      )
      .describe('The newest first; it signs.'),
    edgeCount: z.number().int().describe('All that are not revoked, including those that have applied no state yet.'),
  })
  .meta({ id: 'SigningKeys' })

/** The name, typed again: a click is not enough. */
export const askDeletionInput = z.object({ name: z.string().max(200) })

export const foundInput = z.object({ name: nameInput })

export const acceptedView = z.object({ organizationId: z.uuid(), organizationName: z.string() })
