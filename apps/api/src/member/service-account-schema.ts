import { z } from 'zod'
import { instantOf, listSort, text } from '../rules/list-sort.ts'
import { nameOf, pageInput, pageOf, searchInput, seenRevision } from '../rules/object-fields.ts'
import { roleView } from '../rules/permissions.ts'
import { count, instant, uuid } from '../rules/scalars.ts'
import { memberView, scopeInput } from './schema.ts'

export const serviceAccountsMax = 200

const name = nameOf('Enter a name for the service account.')

export const serviceAccountSort = listSort(
  { name: text('user.name'), createdAt: instantOf('createdAt') },
  'name',
  'userId',
)
export const serviceAccountListInput = z.object({ ...pageInput, sort: serviceAccountSort.input, ...searchInput })
export const serviceAccountInput = z.object({ serviceAccountId: uuid })
export const createServiceAccountInput = z.object({ name, role: roleView, scope: scopeInput })
export const updateServiceAccountInput = z.object({
  serviceAccountId: uuid,
  revision: seenRevision,
  name: name.optional(),
  disabled: z.boolean().optional().describe('While it is disabled, all its keys are refused.'),
})
export const removeServiceAccountInput = z.object({ serviceAccountId: uuid, revision: seenRevision.optional() })

export const serviceAccountView = z
  .object({
    id: uuid.describe('Also its `userId` among the members, by which it is granted further roles.'),
    name: z.string(),
    createdAt: instant,
    disabledAt: instant.nullable().describe('Since when all its keys are refused; null while it is enabled.'),
    revision: seenRevision,
    grants: memberView.shape.grants,
    keys: z
      .object({
        count: count.describe('API keys that can be used.'),
        lastUsedAt: instant.nullable().describe('When any of its keys was used last, to the minute.'),
      })
      .nullable()
      .describe('Null for a caller who may not see API keys.'),
    mayChange: z.boolean(),
  })
  .meta({ id: 'ServiceAccount' })
export type ServiceAccountView = z.infer<typeof serviceAccountView>
export const serviceAccountPage = pageOf(serviceAccountView)
