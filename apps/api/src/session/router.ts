import { verifyPassword } from 'better-auth/crypto'
import { openProcedure, personProcedure, procedure, router } from '../http/trpc/trpc.ts'
import { isPlatformOperator } from '../platform/public.ts'
import { doneView } from '../rules/changed-object.ts'
import { passwordRule } from '../rules/person.ts'
import { chooseOrganization, listOwnOrganizations } from './choose-organization.ts'
import { confirmSession } from './confirm-session.ts'
import { endOtherSessions, endSession, getAccount, listOwnSessions } from './own-sessions.ts'
import {
  accessView,
  accountView,
  chooseOrganizationInput,
  confirmInput,
  ownOrganizationsView,
  ownSessionsView,
  sessionInput,
  sessionView,
  sessionViewOf,
  signInView,
} from './schema.ts'

const ofPersons = { excluded: 'an API key is no person, and is of one organization' }

export const sessionRouter = router({
  me: procedure
    .meta({
      permission: 'organization.read',
      place: 'visible',
      rest: { method: 'GET', path: '/session', summary: 'The caller and its permissions' },
    })
    .output(sessionView)
    .query(({ ctx: { actor } }) => sessionViewOf(actor)),
  organizations: personProcedure
    .meta({ who: 'person', rest: ofPersons })
    .output(ownOrganizationsView)
    .query(({ ctx }) => listOwnOrganizations(ctx)),
  account: personProcedure
    .meta({ who: 'person', rest: ofPersons })
    .output(accountView)
    .query(({ ctx }) => getAccount(ctx)),
  signIn: openProcedure
    .meta({ who: 'anyone', rest: { excluded: 'it belongs to the sign-in page' } })
    .output(signInView)
    .query(({ ctx: { oidcName, tenancy } }) => ({
      oidcName,
      passwordRule,
      isSelfService: tenancy.isSelfService,
      contact: tenancy.contact,
    })),
  access: personProcedure
    .meta({ who: 'person', rest: ofPersons })
    .output(accessView)
    .query(async ({ ctx }) => ({
      name: ctx.person.name,
      email: ctx.person.email,
      isPlatformOperator: await isPlatformOperator(ctx, ctx.person.userId),
      isSelfService: ctx.tenancy.isSelfService,
      contact: ctx.tenancy.contact,
    })),
  confirm: personProcedure
    .meta({ who: 'person', rest: ofPersons })
    .input(confirmInput)
    .output(doneView)
    .mutation(({ ctx, input }) => confirmSession({ ...ctx, verifyPassword }, input)),
  own: personProcedure
    .meta({ who: 'person', rest: ofPersons })
    .output(ownSessionsView)
    .query(({ ctx }) => listOwnSessions(ctx)),
  end: personProcedure
    .meta({ who: 'person', rest: ofPersons })
    .input(sessionInput)
    .output(doneView)
    .mutation(({ ctx, input }) => endSession(ctx, input)),
  endOthers: personProcedure
    .meta({ who: 'person', rest: ofPersons })
    .output(doneView)
    .mutation(({ ctx }) => endOtherSessions(ctx)),
  chooseOrganization: personProcedure
    .meta({ who: 'person', rest: ofPersons })
    .input(chooseOrganizationInput)
    .output(doneView)
    .mutation(({ ctx, input }) => chooseOrganization(ctx, input)),
})
