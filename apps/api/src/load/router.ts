import { procedure, router } from '../http/trpc/trpc.ts'
import { getCapacity } from './get-capacity.ts'
import { getEdgeLoad, getSiteLoad } from './read-load.ts'
import { edgeCapacity, edgeCapacityInput, edgeLoadInput, loadView, siteLoadInput } from './schema.ts'

export const loadRouter = router({
  ofEdge: procedure
    .meta({
      permission: 'edge.read',
      place: { kind: 'edge', id: 'edgeId' },
      rest: { method: 'GET', path: '/edges/{edgeId}/load', summary: 'Load of an edge over time' },
    })
    .input(edgeLoadInput)
    .output(loadView)
    .query(({ ctx, input }) => getEdgeLoad(ctx, input)),
  ofSite: procedure
    .meta({
      permission: 'edge.read',
      place: { kind: 'site', id: 'siteId' },
      rest: { method: 'GET', path: '/sites/{siteId}/load', summary: 'Load of a site’s edges together over time' },
    })
    .input(siteLoadInput)
    .output(loadView)
    .query(({ ctx, input }) => getSiteLoad(ctx, input)),
  capacity: procedure
    .meta({
      permission: 'edge.read',
      place: { kind: 'edge', id: 'edgeId' },
      rest: {
        method: 'GET',
        path: '/edges/{edgeId}/capacity',
        summary: 'About how many more devices an edge carries',
      },
    })
    .input(edgeCapacityInput)
    .output(edgeCapacity)
    .query(({ ctx, input }) => getCapacity(ctx, input.edgeId)),
})
