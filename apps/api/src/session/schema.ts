import { z } from 'zod'
import type { Actor } from '../rules/actor.ts'
import { permissionsOf, permissionView, roleView } from '../rules/permissions.ts'
import { emailInput, nameInput, passwordInput } from '../rules/person.ts'

const grantView = z.object({
  role: roleView,
  farmId: z.uuid().nullable().describe('The scope: all null is the whole organization.'),
  siteId: z.uuid().nullable(),
  collectionId: z.uuid().nullable(),
  permissions: z.array(permissionView),
})

export const sessionView = z
  .object({
    user: z.object({ id: z.uuid().nullable(), name: z.string(), email: z.string() }),
    organization: z.object({ id: z.uuid(), name: z.string() }),
    grants: z.array(grantView),
  })
  .meta({ id: 'Session' })

export function sessionViewOf(actor: Actor): z.infer<typeof sessionView> {
  return {
    user: { id: actor.userId, name: actor.userName, email: actor.userEmail },
    organization: { id: actor.organizationId, name: actor.organizationName },
    grants: actor.grants.map(({ role, scope }) => ({
      role,
      ...scope,
      permissions: permissionsOf(role).filter((name) => actor.onlyPermissions?.has(name) ?? true),
    })),
  }
}

export const ownOrganizationsView = z.array(
  z.object({
    id: z.uuid(),
    name: z.string(),
    roles: z.array(z.object({ role: roleView, isOfPart: z.boolean() })),
  }),
)
export const accountView = z.object({
  name: z.string(),
  email: z.string(),
  hasTotp: z.boolean(),
  hasPassword: z.boolean().describe('False for who signs in by the provider alone.'),
})

export const chooseOrganizationInput = z.object({ organizationId: z.uuid() })

export const ownSessionsView = z.array(
  z.object({
    id: z.uuid(),
    address: z.string().nullable(),
    agent: z.string().nullable(),
    signedInAt: z.iso.datetime(),
    usedAt: z.iso.datetime(),
    isCurrent: z.boolean(),
  }),
)
export const sessionInput = z.object({ sessionId: z.uuid() })
/** The options of the sign-in page. */
export const signInView = z.object({
  oidcName: z.string().nullable(),
  isSelfService: z.boolean(),
  contact: z.string().nullable().describe('The operator of the installation; null if none is named.'),
  passwordRule: z.string(),
})

const tokenLengthMax = 100

export const tokenInput = z.object({ token: z.string().min(1).max(tokenLengthMax) })

export const setupInput = tokenInput.extend({
  organizationName: nameInput,
  name: nameInput,
  email: emailInput,
  password: passwordInput,
})

export const setupView = z.object({ expiresAt: z.iso.datetime() })

export const signUpInput = z.object({ email: z.string().max(254) })

export const signUpAsked = z.object({ asked: z.literal(true) })

export const signUpOfferView = z.object({ email: z.string() })

export const completeSignUpInput = z.object({
  token: z.string().min(1).max(100),
  name: nameInput,
  password: passwordInput,
})

export const confirmInput = z.object({
  password: z.string().min(1).max(200),
  code: z
    .string()
    .transform((text) => text.replaceAll(/\s/g, ''))
    .pipe(z.string().max(20))
    .optional()
    .describe('The code of the authenticator, if the account has one.'),
})

/** The actions of a signed-in person outside of any organization. */
export const accessView = z.object({
  name: z.string(),
  email: z.string(),
  isPlatformOperator: z.boolean(),
  isSelfService: z.boolean(),
  contact: z.string().nullable(),
})
