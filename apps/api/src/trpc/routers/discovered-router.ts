import {
  adoptInput,
  adoptResult,
  discoveredListInput,
  discoveredPage,
  ignoreInput,
  ignoreResult,
  rulesApplied,
  rulesInput,
  rulesPreview,
  rulesView,
  setRulesInput,
  waitingCountResult,
} from '../../domain/discovery-view.ts'
import { adoptDiscovered } from '../../services/discovery/adopt-discovered.ts'
import { getRules, setRules } from '../../services/discovery/adoption-rules.ts'
import { applyRules, previewRules } from '../../services/discovery/apply-rules.ts'
import { ignoreDiscovered } from '../../services/discovery/ignore-discovered.ts'
import { countWaiting, listDiscovered } from '../../services/discovery/list-discovered.ts'
import { procedure, router } from '../trpc.ts'

export const discoveredRouter = router({
  list: procedure
    .meta({ minimumRole: 'viewer' })
    .input(discoveredListInput)
    .output(discoveredPage)
    .query(({ ctx, input }) => listDiscovered(ctx, input)),
  waitingCount: procedure
    .meta({ minimumRole: 'viewer' })
    .output(waitingCountResult)
    .query(({ ctx }) => countWaiting(ctx)),
  adopt: procedure
    .meta({ minimumRole: 'operator' })
    .input(adoptInput)
    .output(adoptResult)
    .mutation(({ ctx, input }) => adoptDiscovered(ctx, input)),
  ignore: procedure
    .meta({ minimumRole: 'operator' })
    .input(ignoreInput)
    .output(ignoreResult)
    .mutation(({ ctx, input }) => ignoreDiscovered(ctx, input)),
  rules: procedure
    .meta({ minimumRole: 'viewer' })
    .input(rulesInput)
    .output(rulesView)
    .query(({ ctx, input }) => getRules(ctx, input.siteId)),
  setRules: procedure
    // Rules adopt without anybody looking.
    .meta({ minimumRole: 'admin' })
    .input(setRulesInput)
    .output(rulesView)
    .mutation(({ ctx, input }) => setRules(ctx, input)),
  previewRules: procedure
    .meta({ minimumRole: 'viewer' })
    .input(rulesInput)
    .output(rulesPreview)
    .query(({ ctx, input }) => previewRules(ctx, input.siteId)),
  applyRules: procedure
    .meta({ minimumRole: 'operator' })
    .input(rulesInput)
    .output(rulesApplied)
    .mutation(({ ctx, input }) => applyRules(ctx, input.siteId)),
})
