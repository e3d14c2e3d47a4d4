import { z } from 'zod'
import { seenRevision } from '../rules/object-fields.ts'
import { nameInput, passwordInput } from '../rules/person.ts'
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
  /** When it will be deleted; null while nobody has asked for that. */
  deleteAfter: z.iso.datetime().nullable(),
  deleteAskedAt: z.iso.datetime().nullable(),
  /** Days between asking for the deletion and it. */
  deletionGraceDays: z.number().int(),
  /** Who runs the installation; null where nobody is named. */
  contact: z.string().nullable(),
})

export const renameOrganizationInput = z.object({
  name: nameInput,
  revision: seenRevision,
})
export const usageView = z.object({ quotas: z.array(quotaView) })

export const signingKeysView = z.object({
  /** The newest first; it signs. */
  keys: z.array(
    z.object({
      id: z.uuid(),
      publicKey: z.string(),
      createdAt: z.iso.datetime(),
      isNewest: z.boolean(),
      /** Edges whose last desired state, as far as they have said, is signed by it. */
      edgeCount: z.number().int(),
    }),
  ),
  /** All that are not revoked, those that have taken no state yet included. */
  edgeCount: z.number().int(),
})

/** The name, typed once more: a click is not enough. */
export const askDeletionInput = z.object({ name: z.string().max(200) })

export const signUpInput = z.object({ email: z.string().max(254) })
export const signUpAsked = z.object({ asked: z.literal(true) })
export const signUpOfferView = z.object({ email: z.string() })
export const completeSignUpInput = z.object({
  token: z.string().min(1).max(100),
  name: nameInput,
  password: passwordInput,
})
export const foundInput = z.object({ name: nameInput })
export const confirmInput = z.object({
  password: z.string().min(1).max(200),
  /** Of the authenticator, where the account has one. */
  code: z
    .string()
    .transform((text) => text.replaceAll(/\s/g, ''))
    .pipe(z.string().max(20))
    .optional(),
})
/** What somebody who is signed in can do outside of any organization. */
export const accessView = z.object({
  name: z.string(),
  email: z.string(),
  isPlatformOperator: z.boolean(),
  isSelfService: z.boolean(),
  contact: z.string().nullable(),
})
