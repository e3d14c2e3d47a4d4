import { settingPolicies } from '../http/trpc/setting-policies.ts'
import { procedure, router } from '../http/trpc/trpc.ts'
import { getCleaning } from './get-cleaning.ts'
import { cleaningGetInput, cleaningSetInput, cleaningView } from './schema.ts'
import { setCleaning } from './set-cleaning.ts'

const policies = settingPolicies({
  of: { kind: 'edge', id: 'edgeId' },
  path: '/edges/{edgeId}/cleaning',
  permission: 'edge.read',
  changedBy: 'vdisk.change',
  summaries: {
    get: 'When an edge’s store frees unused space',
    set: 'Choose when an edge’s store frees unused space',
  },
})

export const cleaningRouter = router({
  get: procedure
    .meta(policies.get)
    .input(cleaningGetInput)
    .output(cleaningView)
    .query(({ ctx, input }) => getCleaning(ctx, input.edgeId)),
  set: procedure
    .meta(policies.set)
    .input(cleaningSetInput)
    .output(cleaningView)
    .mutation(({ ctx, input }) => setCleaning(ctx, input)),
})
