import { procedure, router } from '../http/trpc/trpc.ts'
import { cancelRollout, pauseRollout, resumeRollout, startNextWave } from './change-rollout.ts'
import { createRollout } from './create-rollout.ts'
import { getRollout, listRolloutEdges, listRollouts } from './read-rollouts.ts'
import {
  createRolloutInput,
  resumeRolloutInput,
  rolloutChangeInput,
  rolloutDetail,
  rolloutEdgePage,
  rolloutEdgesInput,
  rolloutGetInput,
  rolloutListInput,
  rolloutPage,
} from './schema.ts'

export const rolloutRouter = router({
  list: procedure
    .meta({
      permission: 'rollout.read',
      place: 'visible',
      rest: { method: 'GET', path: '/rollouts', summary: 'Rollouts of edge releases' },
    })
    .input(rolloutListInput)
    .output(rolloutPage)
    .query(({ ctx, input }) => listRollouts(ctx, input)),
  get: procedure
    .meta({
      permission: 'rollout.read',
      place: { kind: 'rollout', id: 'rolloutId' },
      rest: { method: 'GET', path: '/rollouts/{rolloutId}', summary: 'A rollout' },
    })
    .input(rolloutGetInput)
    .output(rolloutDetail)
    .query(({ ctx, input }) => getRollout(ctx, input.rolloutId)),
  edges: procedure
    .meta({
      permission: 'rollout.read',
      place: { kind: 'rollout', id: 'rolloutId' },
      rest: { method: 'GET', path: '/rollouts/{rolloutId}/edges', summary: 'Edges of a rollout, in its order' },
    })
    .input(rolloutEdgesInput)
    .output(rolloutEdgePage)
    .query(({ ctx, input }) => listRolloutEdges(ctx, input)),
  create: procedure
    .meta({
      permission: 'rollout.change',
      place: { kind: 'farm', id: 'farmId' },
      rest: {
        method: 'POST',
        path: '/farms/{farmId}/rollouts',
        summary: 'Roll a release out to the edges of a farm',
        creates: '/rollouts/{id}',
      },
    })
    .input(createRolloutInput)
    .output(rolloutDetail)
    .mutation(({ ctx, input }) => createRollout(ctx, ctx.repository, input)),
  pause: procedure
    .meta({
      permission: 'rollout.change',
      place: { kind: 'rollout', id: 'rolloutId' },
      rest: { method: 'POST', path: '/rollouts/{rolloutId}/pause', summary: 'Pause a rollout' },
    })
    .input(rolloutChangeInput)
    .output(rolloutDetail)
    .mutation(({ ctx, input }) => pauseRollout(ctx, input)),
  resume: procedure
    .meta({
      permission: 'rollout.change',
      place: { kind: 'rollout', id: 'rolloutId' },
      rest: { method: 'POST', path: '/rollouts/{rolloutId}/resume', summary: 'Resume a paused rollout' },
    })
    .input(resumeRolloutInput)
    .output(rolloutDetail)
    .mutation(({ ctx, input }) => resumeRollout(ctx, input)),
  startNextWave: procedure
    .meta({
      permission: 'rollout.change',
      place: { kind: 'rollout', id: 'rolloutId' },
      rest: { method: 'POST', path: '/rollouts/{rolloutId}/next-wave', summary: 'Start the next wave of a rollout' },
    })
    .input(rolloutChangeInput)
    .output(rolloutDetail)
    .mutation(({ ctx, input }) => startNextWave(ctx, input)),
  cancel: procedure
    .meta({
      permission: 'rollout.change',
      place: { kind: 'rollout', id: 'rolloutId' },
      rest: {
        method: 'POST',
        path: '/rollouts/{rolloutId}/cancel',
        summary: 'Cancel a rollout; edges that run the release keep it',
      },
    })
    .input(rolloutChangeInput)
    .output(rolloutDetail)
    .mutation(({ ctx, input }) => cancelRollout(ctx, input)),
})
