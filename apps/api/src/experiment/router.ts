import { procedure, router } from '../http/trpc/trpc.ts'
import { applyExperiment, pauseExperiment, resumeExperiment, stopExperiment } from './change-experiment.ts'
import { createExperiment } from './create-experiment.ts'
import { getExperiment, listExperiments, listTrials } from './read-experiments.ts'
import {
  applyExperimentInput,
  createExperimentInput,
  experimentChangeInput,
  experimentDetail,
  experimentInput,
  experimentListInput,
  experimentPage,
  trialListInput,
  trialPage,
} from './schema.ts'

const place = { kind: 'experiment', id: 'experimentId' } as const

export const experimentRouter = router({
  list: procedure
    .meta({
      permission: 'experiment.read',
      place: 'visible',
      rest: { method: 'GET', path: '/experiments', summary: 'Experiments with settings of boots' },
    })
    .input(experimentListInput)
    .output(experimentPage)
    .query(({ ctx, input }) => listExperiments(ctx, input)),
  get: procedure
    .meta({
      permission: 'experiment.read',
      place,
      rest: { method: 'GET', path: '/experiments/{experimentId}', summary: 'An experiment with its results' },
    })
    .input(experimentInput)
    .output(experimentDetail)
    .query(({ ctx, input }) => getExperiment(ctx, input.experimentId)),
  trials: procedure
    .meta({
      permission: 'experiment.read',
      place,
      rest: { method: 'GET', path: '/experiments/{experimentId}/trials', summary: 'Boots of an experiment' },
    })
    .input(trialListInput)
    .output(trialPage)
    .query(({ ctx, input }) => listTrials(ctx, input)),
  create: procedure
    .meta({
      permission: 'experiment.change',
      place: { kind: 'site', id: 'siteId' },
      rest: {
        method: 'POST',
        path: '/sites/{siteId}/experiments',
        summary: 'Start an experiment with devices of a site',
        creates: '/experiments/{id}',
      },
    })
    .input(createExperimentInput)
    .output(experimentDetail)
    .mutation(({ ctx, input }) => createExperiment(ctx, input)),
  pause: procedure
    .meta({
      permission: 'experiment.change',
      place,
      rest: { method: 'POST', path: '/experiments/{experimentId}/pause', summary: 'Pause an experiment' },
    })
    .input(experimentChangeInput)
    .output(experimentDetail)
    .mutation(({ ctx, input }) => pauseExperiment(ctx, input)),
  resume: procedure
    .meta({
      permission: 'experiment.change',
      place,
      rest: { method: 'POST', path: '/experiments/{experimentId}/resume', summary: 'Resume a paused experiment' },
    })
    .input(experimentChangeInput)
    .output(experimentDetail)
    .mutation(({ ctx, input }) => resumeExperiment(ctx, input)),
  stop: procedure
    .meta({
      permission: 'experiment.change',
      place,
      rest: {
        method: 'POST',
        path: '/experiments/{experimentId}/stop',
        summary: 'Stop an experiment; its boots so far are its result',
      },
    })
    .input(experimentChangeInput)
    .output(experimentDetail)
    .mutation(({ ctx, input }) => stopExperiment(ctx, input)),
  applyCell: procedure
    .meta({
      permission: 'collection.change',
      place,
      rest: {
        method: 'POST',
        path: '/experiments/{experimentId}/apply',
        summary: 'Give the settings of a cell to the collections of its devices',
      },
    })
    .input(applyExperimentInput)
    .output(experimentDetail)
    .mutation(({ ctx, input }) => applyExperiment(ctx, input)),
})
