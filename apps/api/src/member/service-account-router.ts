import { procedure, router } from '../http/trpc/trpc.ts'
import { doneView } from '../rules/changed-object.ts'
import {
  createServiceAccountInput,
  removeServiceAccountInput,
  serviceAccountInput,
  serviceAccountListInput,
  serviceAccountPage,
  serviceAccountView,
  updateServiceAccountInput,
} from './service-account-schema.ts'
import {
  createServiceAccount,
  getServiceAccount,
  listServiceAccounts,
  removeServiceAccount,
  updateServiceAccount,
} from './service-accounts.ts'

const path = '/service-accounts/{serviceAccountId}'

export const serviceAccountRouter = router({
  list: procedure
    .meta({
      permission: 'member.read',
      place: 'visible',
      rest: { method: 'GET', path: '/service-accounts', summary: 'Service accounts and their roles' },
    })
    .input(serviceAccountListInput)
    .output(serviceAccountPage)
    .query(({ ctx, input }) => listServiceAccounts(ctx, input)),
  get: procedure
    .meta({
      permission: 'member.read',
      place: 'visible',
      rest: { method: 'GET', path, summary: 'A service account' },
    })
    .input(serviceAccountInput)
    .output(serviceAccountView)
    .query(({ ctx, input }) => getServiceAccount(ctx, input)),
  create: procedure
    .meta({
      permission: 'member.change',
      place: 'visible',
      rest: {
        method: 'POST',
        path: '/service-accounts',
        summary: 'Create a service account with its first role',
        description:
          'It counts as a member. Further roles: `POST /members/{userId}/grants` with its id. Keys: `POST /api-keys` with `serviceAccountId`.',
        creates: '/service-accounts/{id}',
      },
    })
    .input(createServiceAccountInput)
    .output(serviceAccountView)
    .mutation(({ ctx, input }) => createServiceAccount(ctx, input)),
  update: procedure
    .meta({
      permission: 'member.change',
      place: 'visible',
      rest: { method: 'PATCH', path, summary: 'Rename, disable or enable a service account' },
    })
    .input(updateServiceAccountInput)
    .output(serviceAccountView)
    .mutation(({ ctx, input }) => updateServiceAccount(ctx, input)),
  remove: procedure
    .meta({
      permission: 'member.change',
      place: 'visible',
      rest: { method: 'DELETE', path, summary: 'Delete a service account and revoke its API keys', silent: true },
    })
    .input(removeServiceAccountInput)
    .output(doneView)
    .mutation(({ ctx, input }) => removeServiceAccount(ctx, input)),
})
