import { procedure, router } from '../http/trpc/trpc.ts'
import { setFarmPlacement, setPlacement } from './change-placement.ts'
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

const ofVdisk = { kind: 'vdisk', id: 'vdiskId' } as const
const ofFarm = { kind: 'farm', id: 'farmId' } as const

export const placementRouter = router({
  get: procedure
    .meta({
      permission: 'vdisk.read',
      place: ofVdisk,
      rest: { method: 'GET', path: '/vdisks/{vdiskId}/placement', summary: 'Which edges hold the versions of a vDisk' },
    })
    .input(placementGetInput)
    .output(placementView)
    .query(({ ctx, input }) => getPlacement(ctx, input.vdiskId)),
  set: procedure
    .meta({
      permission: 'vdisk.change',
      place: ofVdisk,
      rest: {
        method: 'PUT',
        path: '/vdisks/{vdiskId}/placement',
        summary: 'Choose which edges hold a vDisk’s versions',
      },
    })
    .input(placementSetInput)
    .output(placementView)
    .mutation(({ ctx, input }) => setPlacement(ctx, input)),
  getOfFarm: procedure
    .meta({
      permission: 'vdisk.read',
      place: ofFarm,
      rest: { method: 'GET', path: '/farms/{farmId}/placement', summary: 'Placement of a farm’s vDisks without one' },
    })
    .input(farmPlacementGetInput)
    .output(placementView)
    .query(({ ctx, input }) => getFarmPlacement(ctx, input.farmId)),
  setOfFarm: procedure
    .meta({
      permission: 'vdisk.change',
      place: ofFarm,
      rest: { method: 'PUT', path: '/farms/{farmId}/placement', summary: 'Choose the placement of a farm’s vDisks' },
    })
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
