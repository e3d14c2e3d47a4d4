import { vdiskDetail, vdiskGetInput, vdiskListInput, vdiskPage } from '../../domain/vdisk-view.ts'
import { getVdisk } from '../../services/vdisk/get-vdisk.ts'
import { listVdisks } from '../../services/vdisk/list-vdisks.ts'
import { procedure, router } from '../trpc.ts'

export const vdiskRouter = router({
  list: procedure
    .meta({
      permission: 'vdisk.read',
      place: 'visible',
      rest: { method: 'GET', path: '/vdisks', summary: 'vDisks' },
    })
    .input(vdiskListInput)
    .output(vdiskPage)
    .query(({ ctx, input }) => listVdisks(ctx, input)),
  get: procedure
    .meta({
      permission: 'vdisk.read',
      place: { kind: 'vdisk', id: 'vdiskId' },
      rest: { method: 'GET', path: '/vdisks/{vdiskId}', summary: 'A vDisk and its versions' },
    })
    .input(vdiskGetInput)
    .output(vdiskDetail)
    .query(({ ctx, input }) => getVdisk(ctx, input.vdiskId)),
})
