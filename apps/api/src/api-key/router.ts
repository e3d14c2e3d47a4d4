import { procedure, router } from '../http/trpc/trpc.ts'
import { createApiKey, revokeApiKey, rotateApiKey, takeOverApiKey } from './change-api-keys.ts'
import { getApiKey, listApiKeys } from './list-api-keys.ts'
import {
  apiKeyInput,
  apiKeyListInput,
  apiKeyPage,
  apiKeyView,
  createApiKeyInput,
  createdApiKey,
  rolesView,
  rolesWithPermissions,
  rotateApiKeyInput,
} from './schema.ts'

export const apiKeyRouter = router({
  roles: procedure
    .meta({
      permission: 'api_key.read',
      place: 'visible',
      rest: { method: 'GET', path: '/roles', summary: 'Roles and their permissions' },
    })
    .output(rolesView)
    .query(() => rolesWithPermissions()),
  list: procedure
    .meta({
      permission: 'api_key.read',
      place: 'organization',
      rest: { method: 'GET', path: '/api-keys', summary: 'API keys' },
    })
    .input(apiKeyListInput)
    .output(apiKeyPage)
    .query(({ ctx, input }) => listApiKeys(ctx, input)),
  get: procedure
    .meta({
      permission: 'api_key.read',
      place: 'organization',
      rest: { method: 'GET', path: '/api-keys/{apiKeyId}', summary: 'An API key' },
    })
    .input(apiKeyInput)
    .output(apiKeyView)
    .query(({ ctx, input }) => getApiKey(ctx, input)),
  create: procedure
    .meta({
      permission: 'api_key.change',
      place: 'organization',
      confirmed: true,
      rest: {
        method: 'POST',
        path: '/api-keys',
        summary: 'Create an API key',
        description: 'The answer contains the secret, which is shown only once. Only people can create keys.',
        creates: '/api-keys/{id}',
      },
    })
    .input(createApiKeyInput)
    .output(createdApiKey)
    .mutation(({ ctx, input }) => createApiKey(ctx, input)),
  rotate: procedure
    .meta({
      permission: 'api_key.change',
      place: 'organization',
      confirmed: true,
      rest: {
        method: 'POST',
        path: '/api-keys/{apiKeyId}/rotate',
        summary: 'Replace an API key by a second one with the same rights',
        description:
          'The answer contains the secret of the second key, which is shown only once. Both are accepted for `overlapHours`.',
        creates: '/api-keys/{id}',
      },
    })
    .input(rotateApiKeyInput)
    .output(createdApiKey)
    .mutation(({ ctx, input }) => rotateApiKey(ctx, input)),
  takeOver: procedure
    .meta({
      permission: 'api_key.change',
      place: 'organization',
      confirmed: true,
      rest: {
        method: 'POST',
        path: '/api-keys/{apiKeyId}/take-over',
        summary: 'Take an API key over, so that it has your permissions and lasts as long as your membership',
      },
    })
    .input(apiKeyInput)
    .output(apiKeyView)
    .mutation(({ ctx, input }) => takeOverApiKey(ctx, input)),
  revoke: procedure
    .meta({
      permission: 'api_key.change',
      place: 'organization',
      rest: { method: 'POST', path: '/api-keys/{apiKeyId}/revoke', summary: 'Revoke an API key' },
    })
    .input(apiKeyInput)
    .output(apiKeyView)
    .mutation(({ ctx, input }) => revokeApiKey(ctx, input)),
})
