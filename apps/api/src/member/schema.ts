import { z } from 'zod'
import { instantOf, instantOrNull, listSort, text } from '../rules/list-sort.ts'
import { pageInput, pageOf, seenRevision } from '../rules/object-fields.ts'
import { holdsUpwards, permissionNames, permissions, permissionView, roles, roleView } from '../rules/permissions.ts'
import { emailInput, nameInput, passwordInput } from '../rules/person.ts'
import type { PlaceKind } from '../rules/place.ts'
import { tokenInput } from '../session/schema.ts'

/** The scope of a role: at most one is set; none is the whole organization. */
export const scopeInput = z
  .object({
    farmId: z.uuid().nullable().default(null),
    siteId: z.uuid().nullable().default(null),
    collectionId: z.uuid().nullable().default(null),
  })
  .refine(({ farmId, siteId, collectionId }) => [farmId, siteId, collectionId].filter(Boolean).length <= 1, {
    message: 'names more than one scope; choose the innermost',
  })
export type ScopeInput = z.infer<typeof scopeInput>

export const scopeView = z.object({
  kind: z.enum(['organization', 'farm', 'site', 'collection']),
  id: z.uuid().nullable().describe('Id of the farm, site or collection; null for the organization.'),
  name: z.string().describe('E.g. `Berlin`, and `Lab in Berlin` for a collection.'),
})

const grantView = z.object({
  id: z.uuid(),
  role: roleView,
  scope: scopeView,
  grantedAt: z.iso.datetime(),
  mayTake: z.boolean().describe('The requesting person may remove it.'),
})

export const memberView = z
  .object({
    userId: z.uuid(),
    kind: z.enum(['person', 'service_account']).describe('`/service-accounts` lists the accounts of programs.'),
    name: z.string(),
    email: z.string().describe('A service account has one that takes no mail.'),
    hasTotp: z.boolean(),
    joinedAt: z.iso.datetime(),
    lastSignInAt: z.iso.datetime().nullable().describe('In any organization; null before the first one.'),
    revision: seenRevision.describe('Revision of the roles.'),
    isSelf: z.boolean(),
    mayRemove: z.boolean(),
    grants: z.array(grantView),
  })
  .meta({ id: 'Member' })

export const memberSort = listSort(
  {
    joinedAt: instantOf('createdAt'),
    name: text('user.name'),
    email: text('user.email'),
    lastSignInAt: instantOrNull('user.lastSignInAt'),
  },
  'joinedAt',
  'userId',
)
export const memberListInput = z.object({
  ...pageInput,
  sort: memberSort.input,
  search: z.string().trim().max(64).optional(),
})
export const memberPage = pageOf(memberView)
export const memberInput = z.object({ userId: z.uuid() })
export const grantInput = z.object({
  userId: z.uuid(),
  role: roleView,
  scope: scopeInput,
  revision: seenRevision.optional(),
})
export const takeInput = z.object({ userId: z.uuid(), grantId: z.uuid(), revision: seenRevision.optional() })
export const emptyInput = z.object({}).optional()

/** The roles that the requesting person may grant, and where. */
export const grantableView = z
  .array(z.object({ scope: scopeView, roles: z.array(roleView) }))
  .meta({ id: 'GrantableRoles' })

/** The objects for which an explanation can be requested, each by the name of its id. */
export const explainablePlaces = {
  farmId: 'farm',
  siteId: 'site',
  collectionId: 'collection',
  deviceId: 'device',
  edgeId: 'edge',
  vdiskId: 'vdisk',
  storeId: 'store',
  menuId: 'boot_menu',
  scheduleId: 'schedule',
} as const satisfies Record<string, PlaceKind>
type ExplainableId = keyof typeof explainablePlaces
export type ExplainableKind = (typeof explainablePlaces)[ExplainableId]
export const explainableIds = Object.keys(explainablePlaces) as ExplainableId[]

export const explainInput = z
  .object({
    userId: z.uuid(),
    /** At most one of these; without them the whole organization. */
    ...(Object.fromEntries(explainableIds.map((name) => [name, z.uuid().optional()])) as Record<
      ExplainableId,
      z.ZodOptional<z.ZodUUID>
    >),
  })
  .refine((input) => explainableIds.filter((name) => input[name]).length <= 1, {
    message: 'names more than one object; choose one',
  })

export const explainedView = z
  .object({
    userId: z.uuid(),
    memberName: z.string(),
    placeName: z.string().describe('E.g. `the site Berlin`.'),
    permissions: z.array(
      z.object({
        permission: permissionView,
        allows: z.string().describe('Completes the sentence "may …".'),
        allowed: z.boolean(),
        by: z
          .array(grantView.pick({ id: true, role: true, scope: true }))
          .describe("The member's roles that give it here."),
        because: z.string().describe('A sentence with the role that allows it, or the missing permission.'),
      }),
    ),
  })
  .meta({ id: 'ExplainedPermissions' })

export const roleTableView = z
  .object({
    roles: z.array(roleView),
    permissions: z.array(
      z.object({
        permission: permissionView,
        allows: z.string(),
        upwards: z
          .boolean()
          .describe("It also applies to objects that only lead to the role's place, such as the site of a collection."),
        roles: z.array(roleView),
      }),
    ),
  })
  .meta({ id: 'RoleTable' })

export function roleTable(): z.infer<typeof roleTableView> {
  return {
    roles: [...roles],
    permissions: permissionNames.map((permission) => {
      const { allows, roles: of } = permissions[permission]
      return { permission, allows, upwards: holdsUpwards(permission), roles: [...of] }
    }),
  }
}

export const invitationStates = ['open', 'expired', 'accepted', 'revoked'] as const

export const invitationView = z
  .object({
    id: z.uuid(),
    email: z.string(),
    role: roleView,
    scope: scopeView,
    state: z.enum(invitationStates),
    invitedByName: z.string(),
    createdAt: z.iso.datetime(),
    expiresAt: z.iso.datetime(),
    sentAt: z.iso
      .datetime()
      .nullable()
      .describe("Null until a mail server has taken it: the link is in the API's log then."),
    mayChange: z.boolean(),
  })
  .meta({ id: 'Invitation' })

export const invitationSort = listSort(
  { createdAt: instantOf('createdAt'), email: text('email'), expiresAt: instantOf('expiresAt') },
  '-createdAt',
)
export const invitationListInput = z.object({ ...pageInput, sort: invitationSort.input })
export const invitationPage = pageOf(invitationView)
export const inviteInput = z.object({ email: emailInput, role: roleView, scope: scopeInput })
export const invitationInput = z.object({ invitationId: z.uuid() })

/** The content of the link before it is accepted. */
export const offerView = z.object({
  organizationName: z.string(),
  email: z.string(),
  role: roleView,
  scope: scopeView,
  invitedByName: z.string(),
  expiresAt: z.iso.datetime(),
  hasAccount: z.boolean(),
  signedInEmail: z.string().nullable().describe('Address of the signed-in person; null if nobody is signed in.'),
})

export const acceptInput = tokenInput.extend({
  account: z
    .object({ name: nameInput, password: passwordInput })
    .optional()
    .describe('For a new account; nothing if there is one.'),
})
