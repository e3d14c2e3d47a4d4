import { procedure, router } from '../http/trpc/trpc.ts'
import { getCleaning } from './get-cleaning.ts'
import { cleaningGetInput, cleaningSetInput, cleaningView } from './schema.ts'
import { setCleaning } from './set-cleaning.ts'

const ofEdge = { kind: 'edge', id: 'edgeId' } as const

export const cleaningRouter = router({
  get: procedure
    .meta({
      permission: 'edge.read',
      place: ofEdge,
      rest: { method: 'GET', path: '/edges/{edgeId}/cleaning', summary: 'When an edge’s store frees unused space' },
    })
    .input(cleaningGetInput)
    .output(cleaningView)
    .query(({ ctx, input }) => getCleaning(ctx, input.edgeId)),
  set: procedure
    .meta({
      permission: 'vdisk.change',
      place: ofEdge,
      rest: {
        method: 'PUT',
        path: '/edges/{edgeId}/cleaning',
        summary: 'Choose when an edge’s store frees unused space',
      },
    })
    .input(cleaningSetInput)
    .output(cleaningView)
    .mutation(({ ctx, input }) => setCleaning(ctx, input)),
})
