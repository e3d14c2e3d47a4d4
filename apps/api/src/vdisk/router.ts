import { procedure, router } from '../http/trpc/trpc.ts'
import { changedObject, deletedObject, restoredObject, restoreInput } from '../rules/changed-object.ts'
import { restoring } from '../trash/restore-router.ts'
import { createVdisk, removeVdisk, restoreVersion, updateVdisk, updateWriteCache } from './change-vdisk.ts'
import { registerVersion, updateVersion } from './change-version.ts'
import { getVdisk, listVdisks } from './read-vdisks.ts'
import { removeVersion } from './remove-version.ts'
import {
  createVdiskInput,
  removeVdiskInput,
  updateVdiskInput,
  vdiskDetail,
  vdiskGetInput,
  vdiskListInput,
  vdiskPage,
} from './schema.ts'
import {
  registerVersionInput,
  removeVersionInput,
  updateVersionInput,
  updateWriteCacheInput,
} from './version-schema.ts'

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
  create: procedure
    .meta({
      permission: 'vdisk.change',
      place: { kind: 'farm', id: 'farmId' },
      rest: { method: 'POST', path: '/vdisks', summary: 'Create a vDisk', creates: '/vdisks/{id}' },
    })
    .input(createVdiskInput)
    .output(changedObject)
    .mutation(({ ctx, input }) => createVdisk(ctx, input)),
  update: procedure
    .meta({
      permission: 'vdisk.change',
      place: { kind: 'vdisk', id: 'vdiskId' },
      rest: { method: 'PATCH', path: '/vdisks/{vdiskId}', summary: 'Edit a vDisk' },
    })
    .input(updateVdiskInput)
    .output(changedObject)
    .mutation(({ ctx, input }) => updateVdisk(ctx, input)),
  updateWriteCache: procedure
    .meta({
      permission: 'vdisk.change',
      place: { kind: 'vdisk', id: 'vdiskId' },
      rest: {
        method: 'PUT',
        path: '/vdisks/{vdiskId}/write-cache',
        summary: 'Change the write cache of a vDisk',
      },
    })
    .input(updateWriteCacheInput)
    .output(changedObject)
    .mutation(({ ctx, input }) => updateWriteCache(ctx, input)),
  remove: procedure
    .meta({
      permission: 'vdisk.change',
      place: { kind: 'vdisk', id: 'vdiskId' },
      rest: { method: 'DELETE', path: '/vdisks/{vdiskId}', summary: 'Move a vDisk to the trash' },
    })
    .input(removeVdiskInput)
    .output(deletedObject)
    .mutation(({ ctx, input }) => removeVdisk(ctx, input)),
  restore: restoring('vdisk', 'vDisk'),
  registerVersion: procedure
    .meta({
      permission: 'vdisk.change',
      place: { kind: 'vdisk', id: 'vdiskId' },
      rest: {
        method: 'POST',
        path: '/vdisks/{vdiskId}/versions',
        summary: 'Register files on edges as a version',
        creates: '/versions/{id}',
      },
    })
    .input(registerVersionInput)
    .output(changedObject)
    .mutation(({ ctx, input }) => registerVersion(ctx, input)),
  updateVersion: procedure
    .meta({
      permission: 'vdisk.change',
      place: { kind: 'version', id: 'versionId' },
      rest: {
        method: 'PATCH',
        path: '/versions/{versionId}',
        summary: 'Edit the note, labels and protection of a version',
      },
    })
    .input(updateVersionInput)
    .output(changedObject)
    .mutation(({ ctx, input }) => updateVersion(ctx, input)),
  removeVersion: procedure
    .meta({
      permission: 'vdisk.change',
      place: { kind: 'version', id: 'versionId' },
      rest: { method: 'DELETE', path: '/versions/{versionId}', summary: 'Move a version to the trash' },
    })
    .input(removeVersionInput)
    .output(deletedObject)
    .mutation(({ ctx, input }) => removeVersion(ctx, input)),
  restoreVersion: procedure
    .meta({
      permission: 'vdisk.change',
      place: { kind: 'deletion', id: 'deletionId' },
      rest: {
        method: 'POST',
        path: '/trash/{deletionId}/version',
        summary: 'Restore a version from the trash',
      },
    })
    .input(restoreInput)
    .output(restoredObject)
    .mutation(({ ctx, input }) => restoreVersion(ctx, input.deletionId)),
})
