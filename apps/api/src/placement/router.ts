import { settingPolicies } from '../http/trpc/setting-policies.ts'
import { procedure, router } from '../http/trpc/trpc.ts'
import { getFarmPlacement, getPlacement } from './get-placement.ts'
import { listCopies } from './list-copies.ts'
import {
  copiesView,
  farmPlacementGetInput,
  farmPlacementSetInput,
  placementGetInput,
  placementSetInput,
  placementView,
} from './schema.ts'
import { setFarmPlacement, setPlacement } from './set-placement.ts'

const ofVdisk = { kind: 'vdisk', id: 'vdiskId' } as const
const ofVdisks = settingPolicies({
  of: ofVdisk,
  path: '/vdisks/{vdiskId}/placement',
  permission: 'vdisk.read',
  changedBy: 'vdisk.change',
  summaries: { get: 'Which edges hold the versions of a vDisk', set: 'Choose which edges hold a vDisk’s versions' },
})
const ofFarms = settingPolicies({
  of: { kind: 'farm', id: 'farmId' },
  path: '/farms/{farmId}/placement',
  permission: 'vdisk.read',
  changedBy: 'vdisk.change',
  summaries: { get: 'Placement of a farm’s vDisks without one', set: 'Choose the placement of a farm’s vDisks' },
})

export const placementRouter = router({
  get: procedure
    .meta(ofVdisks.get)
    .input(placementGetInput)
    .output(placementView)
    .query(({ ctx, input }) => getPlacement(ctx, input.vdiskId)),
  set: procedure
    .meta(ofVdisks.set)
    .input(placementSetInput)
    .output(placementView)
    .mutation(({ ctx, input }) => setPlacement(ctx, input)),
  getOfFarm: procedure
    .meta(ofFarms.get)
    .input(farmPlacementGetInput)
    .output(placementView)
    .query(({ ctx, input }) => getFarmPlacement(ctx, input.farmId)),
  setOfFarm: procedure
    .meta(ofFarms.set)
    .input(farmPlacementSetInput)
    .output(placementView)
    .mutation(({ ctx, input }) => setFarmPlacement(ctx, input)),
  copies: procedure
    .meta({
      permission: 'vdisk.read',
      place: ofVdisk,
      rest: {
        method: 'GET',
        path: '/vdisks/{vdiskId}/copies',
        summary: 'Which edges hold, fetch or lack each version',
      },
    })
    .input(placementGetInput)
    .output(copiesView)
    .query(({ ctx, input }) => listCopies(ctx, input.vdiskId)),
})
