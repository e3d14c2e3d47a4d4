import { openProcedure, procedure, router } from '../http/trpc/trpc.ts'
import { acceptedView } from '../organization/schema.ts'
import { hashPassword } from '../session/public.ts'
import { tokenInput } from '../session/schema.ts'
import { acceptInvitation, getOffer } from './accept-invitation.ts'
import {
  getInvitation,
  type Invited,
  invite,
  listInvitations,
  markSent,
  resendInvitation,
  revokeInvitation,
} from './invite.ts'
import {
  acceptInput,
  invitationInput,
  invitationListInput,
  invitationPage,
  invitationView,
  inviteInput,
  offerView,
} from './schema.ts'

/** The database client of the whole request, which `procedure` replaces with its transaction. */
const invitingProcedure = procedure.use(({ ctx, next }) => {
  const { afterCommit, sendMail, platform, actor } = ctx
  return next({
    ctx: {
      mailAfterCommit({ mail, view }: Invited) {
        afterCommit(async () => {
          if (!(await sendMail(mail))) return
          await markSent(platform, { organizationId: actor.organizationId, invitationId: view.id })
        })
        return view
      },
    },
  })
})

const ofLinks = { excluded: 'it belongs to the page that the mailed link opens' }

export const invitationRouter = router({
  list: procedure
    .meta({
      permission: 'member.read',
      place: 'visible',
      rest: { method: 'GET', path: '/invitations', summary: 'Pending invitations' },
    })
    .input(invitationListInput)
    .output(invitationPage)
    .query(({ ctx, input }) => listInvitations(ctx, input)),
  get: procedure
    .meta({
      permission: 'member.read',
      place: 'visible',
      rest: { method: 'GET', path: '/invitations/{invitationId}', summary: 'An invitation, also one that is over' },
    })
    .input(invitationInput)
    .output(invitationView)
    .query(({ ctx, input }) => getInvitation(ctx, input)),
  create: invitingProcedure
    .meta({
      permission: 'member.change',
      place: 'visible',
      confirmed: { roles: ['owner'] },
      rest: { method: 'POST', path: '/invitations', summary: 'Invite an e-mail address', creates: '/invitations/{id}' },
    })
    .input(inviteInput)
    .output(invitationView)
    .mutation(async ({ ctx, input }) => ctx.mailAfterCommit(await invite(ctx, input))),
  resend: invitingProcedure
    .meta({
      permission: 'member.change',
      place: 'visible',
      rest: {
        method: 'POST',
        path: '/invitations/{invitationId}/resend',
        summary: 'Resend an invitation with a new link',
      },
    })
    .input(invitationInput)
    .output(invitationView)
    .mutation(async ({ ctx, input }) => ctx.mailAfterCommit(await resendInvitation(ctx, input))),
  revoke: procedure
    .meta({
      permission: 'member.change',
      place: 'visible',
      rest: { method: 'DELETE', path: '/invitations/{invitationId}', summary: 'Revoke an invitation' },
    })
    .input(invitationInput)
    .output(invitationView)
    .mutation(({ ctx, input }) => revokeInvitation(ctx, input)),
  offer: openProcedure
    .meta({ who: 'anyone', rest: ofLinks })
    .input(tokenInput)
    .output(offerView)
    .query(async ({ ctx, input }) => getOffer({ ...ctx, person: await ctx.findPerson() }, input)),
  accept: openProcedure
    .meta({ who: 'anyone', rest: ofLinks })
    .input(acceptInput)
    .output(acceptedView)
    .mutation(async ({ ctx, input }) =>
      acceptInvitation({ ...ctx, hashPassword, person: await ctx.findPerson() }, input),
    ),
})
