import { z } from 'zod'
import { instantOf, instantOrNull, listSort, text } from '../rules/list-sort.ts'
import { nameOf, pageInput, pageOf } from '../rules/object-fields.ts'
import { permissions, permissionsOf, permissionView, roles, roleView } from '../rules/permissions.ts'
import { instant, uuid } from '../rules/scalars.ts'

export const apiKeyPrefix = 'bfk_'
export const apiKeysMax = 200
const requestsPerMinuteMax = 6_000
export const apiKeyValidMs = 90 * 86_400_000

const placeFields = {
  farmId: uuid
    .nullable()
    .default(null)
    .describe('The scope of the role: at most one of the three; without them the whole organization.'),
  siteId: uuid.nullable().default(null),
  collectionId: uuid.nullable().default(null),
}

export const apiKeySort = listSort(
  {
    createdAt: instantOf('createdAt'),
    name: text('name'),
    expiresAt: instantOrNull('expiresAt'),
    lastUsedAt: instantOrNull('lastUsedAt'),
  },
  '-createdAt',
)
export const apiKeyListInput = z.object({
  ...pageInput,
  sort: apiKeySort.input,
  ownerId: uuid.optional().describe('Only keys of this person or service account.'),
})
export const createApiKeyInput = z
  .object({
    name: nameOf('Enter a name for the API key.'),
    role: roleView,
    ...placeFields,
    permissions: z
      .array(permissionView)
      .min(1)
      .max(100)
      .nullable()
      .default(null)
      .describe("A subset of the role's permissions; without it all of them."),
    expiresAt: instant.nullable().optional().describe('90 days from now without it; null: never.'),
    requestsPerMinute: z.number().int().min(1).max(requestsPerMinuteMax).default(600),
    serviceAccountId: uuid
      .nullable()
      .default(null)
      .describe('The owner of the key; without it the caller. A key ends with its owner.'),
  })
  .refine((key) => [key.farmId, key.siteId, key.collectionId].filter(Boolean).length <= 1, {
    path: ['farmId'],
    message: 'A role applies to one scope: a farm, a site or a collection.',
  })
export const apiKeyInput = z.object({ apiKeyId: uuid })

const overlapHoursMax = 720
export const rotateApiKeyInput = z.object({
  apiKeyId: uuid,
  overlapHours: z
    .number()
    .int()
    .min(0)
    .max(overlapHoursMax)
    .default(24)
    .describe('How long the former secret is still accepted, in hours; 0: no longer.'),
})

export const apiKeyView = z
  .object({
    id: uuid,
    name: z.string(),
    prefix: z.string().describe('The first characters of the secret.'),
    role: roleView,
    farmId: uuid.nullable(),
    siteId: uuid.nullable(),
    collectionId: uuid.nullable(),
    placeName: z.string().nullable().describe('Name of the farm, site or collection; null for the whole organization.'),
    permissions: z.array(permissionView).nullable(),
    requestsPerMinute: z.number().int(),
    createdAt: instant,
    createdBy: z
      .string()
      .nullable()
      .describe('The owner: a person or a service account. Null where that account is gone, and the key with it.'),
    createdByUserId: uuid.nullable(),
    serviceAccountId: uuid.nullable().describe('The service account that owns it; null: a person does.'),
    expiresAt: instant.nullable(),
    revokedAt: instant.nullable(),
    lastUsedAt: instant.nullable().describe('To the minute.'),
    state: z
      .enum(['active', 'expired', 'revoked', 'without_creator', 'disabled'])
      .describe('`without_creator`: its owner has left; `disabled`: its service account is disabled.'),
  })
  .meta({ id: 'ApiKey' })
export type ApiKeyView = z.infer<typeof apiKeyView>
export const apiKeyPage = pageOf(apiKeyView)
/** The secret is shown once: only its hash is kept. */
export const createdApiKey = apiKeyView.extend({ secret: z.string() }).meta({ id: 'CreatedApiKey' })

export const rolesView = z
  .object({
    roles: z.array(
      z.object({
        role: roleView,
        permissions: z
          .array(z.object({ permission: permissionView, allows: z.string() }))
          .describe('`allows` is the end of "may …".'),
      }),
    ),
  })
  .meta({ id: 'Roles' })

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
