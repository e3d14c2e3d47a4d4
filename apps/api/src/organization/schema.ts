import { z } from 'zod'
import { seenRevision } from '../rules/object-fields.ts'
import { nameInput } from '../rules/person.ts'
import { quotaView } from '../rules/quotas.ts'

export const emptyInput = z.object({})

export const organizationView = z.object({
  id: z.uuid(),
  name: z.string(),
  /** For settings that name an organization; it stays when the name changes. */
  slug: z.string(),
  revision: z.number().int(),
  createdAt: z.iso.datetime(),
  /** Since when nothing can be changed; null while it can. */
  suspendedAt: z.iso.datetime().nullable(),
  /** When it will be deleted; null while nobody has requested that. */
  deleteAfter: z.iso.datetime().nullable(),
  deleteAskedAt: z.iso.datetime().nullable(),
  deletionGraceDays: z.number().int(),
  /** The operator of the installation; null if none is named. */
  contact: z.string().nullable(),
})

export const renameOrganizationInput = z.object({ name: nameInput, revision: seenRevision })
export const usageView = z.object({ quotas: z.array(quotaView) })

export const signingKeysView = z.object({
  /** The newest first; it signs. */
  keys: z.array(
    z.object({
      id: z.uuid(),
      publicKey: z.string(),
      createdAt: z.iso.datetime(),
      isNewest: z.boolean(),
      /** Edges whose last desired state, as far as reported, is signed by it. */
      edgeCount: z.number().int(),
    }),
  ),
  /** All that are not revoked, including those that have applied no state yet. */
  edgeCount: z.number().int(),
})

/** The name, typed again: a click is not enough. */
export const askDeletionInput = z.object({ name: z.string().max(200) })

export const foundInput = z.object({ name: nameInput })

export const acceptedView = z.object({ organizationId: z.uuid(), organizationName: z.string() })
