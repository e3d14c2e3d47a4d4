import { procedure, router } from '../http/trpc/trpc.ts'
import { runPrediction } from './run-prediction.ts'
import { predictionInput, predictionView } from './schema.ts'

export const predictionRouter = router({
  run: procedure
    .meta({
      permission: 'boot.read',
      place: { kind: 'site', id: 'siteId' },
      rest: {
        method: 'GET',
        path: '/sites/{siteId}/prediction',
        summary: 'How long a storm of boots would take with a version',
      },
    })
    .input(predictionInput)
    .output(predictionView)
    .query(({ ctx, input }) => runPrediction(ctx, input)),
})
