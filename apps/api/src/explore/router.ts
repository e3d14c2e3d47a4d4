import { procedure, router } from '../http/trpc/trpc.ts'
import { comparisonInput, comparisonView } from './comparison-schema.ts'
import { getComparison } from './get-comparison.ts'
import { getDifferences } from './get-differences.ts'
import { getExploration } from './get-exploration.ts'
import { getViews, setViews } from './saved-views.ts'
import { differencesInput, differencesView, exploreInput, exploreView } from './schema.ts'
import { savedViewsInput, savedViewsView } from './views-schema.ts'

export const exploreRouter = router({
  get: procedure
    .meta({
      permission: 'boot.read',
      place: 'visible',
      rest: { method: 'GET', path: '/exploration', summary: 'Boots by time and duration, with figures over time' },
    })
    .input(exploreInput)
    .output(exploreView)
    .query(({ ctx, input }) => getExploration(ctx, input)),
  differences: procedure
    .meta({
      permission: 'boot.read',
      place: 'visible',
      rest: {
        method: 'GET',
        path: '/exploration/differences',
        summary: 'What boots of a time and duration have more often than the others',
      },
    })
    .input(differencesInput)
    .output(differencesView)
    .query(({ ctx, input }) => getDifferences(ctx, input)),
  compare: procedure
    .meta({
      permission: 'boot.read',
      place: 'visible',
      rest: { method: 'GET', path: '/exploration/comparison', summary: 'Two sets of boots, phase by phase' },
    })
    .input(comparisonInput)
    .output(comparisonView)
    .query(({ ctx, input }) => getComparison(ctx, input)),
  views: procedure
    .meta({
      permission: 'boot.read',
      place: 'visible',
      rest: { method: 'GET', path: '/exploration/views', summary: 'The views that the caller has saved' },
    })
    .output(savedViewsView)
    .query(({ ctx }) => getViews(ctx)),
  setViews: procedure
    .meta({
      permission: 'boot.read',
      place: 'visible',
      rest: { method: 'PUT', path: '/exploration/views', summary: 'Replace the views that the caller has saved' },
    })
    .input(savedViewsInput)
    .output(savedViewsView)
    .mutation(({ ctx, input }) => setViews(ctx, input)),
})
