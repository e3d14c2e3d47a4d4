import { procedure, router } from '../http/trpc/trpc.ts'
import { changedObject, deletedObject } from '../rules/changed-object.ts'
import { restoring } from '../trash/restore-router.ts'
import { createFarm, removeFarm, updateFarm } from './change-farm.ts'
import { getFarmOverview } from './get-farm-overview.ts'
import { getFarm, listFarms } from './list-farms.ts'
import {
  createFarmInput,
  farmInput,
  farmListInput,
  farmOverview,
  farmPage,
  farmView,
  removeFarmInput,
  updateFarmInput,
} from './schema.ts'

export const farmRouter = router({
  list: procedure
    .meta({
      permission: 'farm.read',
      place: 'visible',
      rest: { method: 'GET', path: '/farms', summary: 'Farms' },
    })
    .input(farmListInput)
    .output(farmPage)
    .query(({ ctx, input }) => listFarms(ctx, input)),
  get: procedure
    .meta({
      permission: 'farm.read',
      place: { kind: 'farm', id: 'farmId' },
      rest: { method: 'GET', path: '/farms/{farmId}', summary: 'A farm' },
    })
    .input(farmInput)
    .output(farmView)
    .query(({ ctx, input }) => getFarm(ctx, input.farmId)),
  overview: procedure
    .meta({
      permission: 'farm.read',
      place: { kind: 'farm', id: 'farmId' },
      rest: { method: 'GET', path: '/farms/{farmId}/overview', summary: 'Figures of a farm' },
    })
    .input(farmInput)
    .output(farmOverview)
    .query(({ ctx, input }) => getFarmOverview(ctx, input.farmId)),
  create: procedure
    .meta({
      permission: 'farm.change',
      place: 'organization',
      rest: { method: 'POST', path: '/farms', summary: 'Create a farm', creates: '/farms/{id}' },
    })
    .input(createFarmInput)
    .output(changedObject)
    .mutation(({ ctx, input }) => createFarm(ctx, input)),
  update: procedure
    .meta({
      permission: 'farm.change',
      place: { kind: 'farm', id: 'farmId' },
      rest: { method: 'PATCH', path: '/farms/{farmId}', summary: 'Edit a farm' },
    })
    .input(updateFarmInput)
    .output(changedObject)
    .mutation(({ ctx, input }) => updateFarm(ctx, input)),
  remove: procedure
    .meta({
      permission: 'farm.change',
      place: { kind: 'farm', id: 'farmId' },
      rest: { method: 'DELETE', path: '/farms/{farmId}', summary: 'Move a farm to the trash' },
    })
    .input(removeFarmInput)
    .output(deletedObject)
    .mutation(({ ctx, input }) => removeFarm(ctx, input)),
  restore: restoring('farm'),
})
