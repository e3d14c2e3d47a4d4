import { z } from 'zod'
import { nameOf, pageInput, pageOf } from '../rules/object-fields.ts'
import { permissions, permissionsOf, permissionView, roles, roleView } from '../rules/permissions.ts'
import { instant, uuid } from '../rules/scalars.ts'

export const apiKeyPrefix = 'bfk_'
export const apiKeysMax = 200
const requestsPerMinuteMax = 6_000
export const apiKeyValidMs = 90 * 86_400_000

const placeFields = {
  /** The scope of the role: at most one of the three; without them the whole organization. */
  farmId: uuid.nullable().default(null),
  siteId: uuid.nullable().default(null),
  collectionId: uuid.nullable().default(null),
}

export const apiKeyListInput = z.object(pageInput)
export const createApiKeyInput = z
  .object({
    name: nameOf('Enter a name for the API key.'),
    role: roleView,
    ...placeFields,
    /** A subset of the role's permissions; without it all of them. */
    permissions: z.array(permissionView).min(1).max(100).nullable().default(null),
    /** 90 days from now without it; null: never. */
    expiresAt: instant.nullable().optional(),
    requestsPerMinute: z.number().int().min(1).max(requestsPerMinuteMax).default(600),
  })
  .refine((key) => [key.farmId, key.siteId, key.collectionId].filter(Boolean).length <= 1, {
    path: ['farmId'],
    message: 'A role applies to one scope: a farm, a site or a collection.',
  })
export const apiKeyInput = z.object({ apiKeyId: uuid })

export const apiKeyView = z.object({
  id: uuid,
  name: z.string(),
  /** The first characters of the secret. */
  prefix: z.string(),
  role: roleView,
  farmId: uuid.nullable(),
  siteId: uuid.nullable(),
  collectionId: uuid.nullable(),
  /** Name of the farm, site or collection; null for the whole organization. */
  placeName: z.string().nullable(),
  permissions: z.array(permissionView).nullable(),
  requestsPerMinute: z.number().int(),
  createdAt: instant,
  /** Null where that account is gone, and the key with it. */
  createdBy: z.string().nullable(),
  createdByUserId: uuid.nullable(),
  expiresAt: instant.nullable(),
  revokedAt: instant.nullable(),
  /** To the minute. */
  lastUsedAt: instant.nullable(),
  state: z.enum(['active', 'expired', 'revoked', 'without_creator']),
})
export type ApiKeyView = z.infer<typeof apiKeyView>
export const apiKeyPage = pageOf(apiKeyView)
/** The secret is shown once: only its hash is kept. */
export const createdApiKey = apiKeyView.extend({ secret: z.string() })

export const rolesView = z.object({
  roles: z.array(
    z.object({
      role: roleView,
      /** `allows` is the end of "may …". */
      permissions: z.array(z.object({ permission: permissionView, allows: z.string() })),
    }),
  ),
})

export function rolesWithPermissions(): z.infer<typeof rolesView> {
  return {
    roles: roles.map((role) => ({
      role,
      permissions: permissionsOf(role).map((permission) => ({
        permission,
        allows: permissions[permission].allows,
      })),
    })),
  }
}
