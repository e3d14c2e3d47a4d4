import { personProcedure, procedure, router } from '../http/trpc/trpc.ts'
import { askDeletion, cancelDeletion, type DeletionAnswer } from './ask-deletion.ts'
import { foundOrganization } from './found-organization.ts'
import { getUsage, listSigningKeys, renameOrganization } from './organization-settings.ts'
import { getOrganization } from './rows.ts'
import {
  acceptedView,
  askDeletionInput,
  emptyInput,
  foundInput,
  organizationView,
  renameOrganizationInput,
  signingKeysView,
  usageView,
} from './schema.ts'

const ofOwners = { excluded: 'an owner decides, who has given the password just now' }

/** Mails go out once the change is kept. */
const deletionProcedure = procedure.use(({ ctx, next }) =>
  next({
    ctx: {
      mailAfterCommit({ view, mails }: DeletionAnswer) {
        const { afterCommit, sendMail } = ctx
        afterCommit(async () => void (await Promise.all(mails.map((mail) => sendMail(mail)))))
        return view
      },
    },
  }),
)

export const organizationRouter = router({
  get: procedure
    .meta({
      permission: 'organization.read',
      place: 'visible',
      rest: { method: 'GET', path: '/organization', summary: 'The organization' },
    })
    .input(emptyInput)
    .output(organizationView)
    .query(({ ctx }) => getOrganization(ctx)),
  rename: procedure
    .meta({
      permission: 'organization.change',
      place: 'organization',
      rest: { method: 'PATCH', path: '/organization', summary: 'Rename the organization' },
    })
    .input(renameOrganizationInput)
    .output(organizationView)
    .mutation(({ ctx, input }) => renameOrganization(ctx, input)),
  usage: procedure
    .meta({
      permission: 'organization.read',
      place: 'visible',
      rest: { method: 'GET', path: '/organization/usage', summary: 'Usage and limits of the organization' },
    })
    .input(emptyInput)
    .output(usageView)
    .query(({ ctx }) => getUsage(ctx)),
  signingKeys: procedure
    .meta({
      permission: 'organization.change',
      place: 'organization',
      rest: {
        method: 'GET',
        path: '/organization/signing-keys',
        summary: 'Keys that sign desired states, and how many edges use each',
      },
    })
    .input(emptyInput)
    .output(signingKeysView)
    .query(({ ctx }) => listSigningKeys(ctx)),
  askDeletion: deletionProcedure
    .meta({ permission: 'organization.delete', place: 'organization', confirmed: true, rest: ofOwners })
    .input(askDeletionInput)
    .output(organizationView)
    .mutation(async ({ ctx, input }) => ctx.mailAfterCommit(await askDeletion(ctx, input))),
  cancelDeletion: deletionProcedure
    .meta({ permission: 'organization.delete', place: 'organization', rest: ofOwners })
    .input(emptyInput)
    .output(organizationView)
    .mutation(async ({ ctx }) => ctx.mailAfterCommit(await cancelDeletion(ctx))),
  found: personProcedure
    .meta({ who: 'person', rest: { excluded: 'an API key is no person, and is of one organization' } })
    .input(foundInput)
    .output(acceptedView)
    .mutation(({ ctx, input }) => foundOrganization(ctx, input)),
})
