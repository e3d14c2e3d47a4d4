import { settingPolicies } from '../http/trpc/setting-policies.ts'
import { procedure, router } from '../http/trpc/trpc.ts'
import { getObjective } from './get-objective.ts'
import {
  collectionObjectiveInput,
  objectiveView,
  setCollectionObjectiveInput,
  setSiteObjectiveInput,
  siteObjectiveInput,
} from './schema.ts'
import { setObjective } from './set-objective.ts'

const ofSite = settingPolicies({
  of: { kind: 'site', id: 'siteId' },
  path: '/sites/{siteId}/objective',
  permission: 'boot.read',
  changedBy: 'site.change',
  summaries: { get: 'The objective of a site', set: 'Set or remove the objective of a site' },
})
const ofCollection = settingPolicies({
  of: { kind: 'collection', id: 'collectionId' },
  path: '/collections/{collectionId}/objective',
  permission: 'boot.read',
  changedBy: 'collection.change',
  summaries: { get: 'The objective of a collection', set: 'Set or remove the objective of a collection' },
})

export const objectiveRouter = router({
  ofSite: procedure
    .meta(ofSite.get)
    .input(siteObjectiveInput)
    .output(objectiveView)
    .query(({ ctx, input }) => getObjective(ctx, input.siteId)),
  setOfSite: procedure
    .meta(ofSite.set)
    .input(setSiteObjectiveInput)
    .output(objectiveView)
    .mutation(({ ctx, input }) => setObjective(ctx, { kind: 'site', id: input.siteId }, input.objective)),
  ofCollection: procedure
    .meta(ofCollection.get)
    .input(collectionObjectiveInput)
    .output(objectiveView)
    .query(({ ctx, input }) => getObjective(ctx, input.collectionId)),
  setOfCollection: procedure
    .meta(ofCollection.set)
    .input(setCollectionObjectiveInput)
    .output(objectiveView)
    .mutation(({ ctx, input }) => setObjective(ctx, { kind: 'collection', id: input.collectionId }, input.objective)),
})
