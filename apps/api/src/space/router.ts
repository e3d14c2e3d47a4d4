import { procedure, router } from '../http/trpc/trpc.ts'
import { getSpace } from './get-space.ts'
import { spaceGetInput, spaceView } from './schema.ts'

export const spaceRouter = router({
  get: procedure
    .meta({
      permission: 'edge.read',
      place: { kind: 'edge', id: 'edgeId' },
      rest: {
        method: 'GET',
        path: '/edges/{edgeId}/space',
        summary: 'Free space of an edge’s store, and its forecast',
      },
    })
    .input(spaceGetInput)
    .output(spaceView)
    .query(({ ctx, input }) => getSpace(ctx, input.edgeId)),
})
