import { doneView } from '../../domain/member-view.ts'
import {
  chooseOrganizationInput,
  ownOrganizationsView,
  sessionView,
  sessionViewOf,
} from '../../domain/session-view.ts'
import { chooseOrganization, listOwnOrganizations } from '../../services/session/choose-organization.ts'
import { personProcedure, procedure, router } from '../trpc.ts'

const ofPersons = { excluded: 'an API key is no person, and is of one organization' }

export const sessionRouter = router({
  me: procedure
    .meta({
      permission: 'organization.read',
      place: 'visible',
      rest: { method: 'GET', path: '/session', summary: 'Who calls, and what it may do' },
    })
    .output(sessionView)
    .query(({ ctx: { actor } }) => sessionViewOf(actor)),
  organizations: personProcedure
    .meta({ who: 'person', rest: ofPersons })
    .output(ownOrganizationsView)
    .query(({ ctx }) => listOwnOrganizations(ctx)),
  chooseOrganization: personProcedure
    .meta({ who: 'person', rest: ofPersons })
    .input(chooseOrganizationInput)
    .output(doneView)
    .mutation(({ ctx, input }) => chooseOrganization(ctx, input)),
})
