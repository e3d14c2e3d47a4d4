import { procedure, router } from '../http/trpc/trpc.ts'
import { createUpload, deleteUpload } from './change-uploads.ts'
import { listUploads, readUpload } from './list-uploads.ts'
import { uploadCreateInput, uploadGetInput, uploadListInput, uploadPage, uploadView } from './schema.ts'

const ofVdisk = { kind: 'vdisk', id: 'vdiskId' } as const

export const uploadRouter = router({
  list: procedure
    .meta({
      permission: 'vdisk.change',
      place: ofVdisk,
      rest: { method: 'GET', path: '/vdisks/{vdiskId}/uploads', summary: 'Uploaded images of a vDisk' },
    })
    .input(uploadListInput)
    .output(uploadPage)
    .query(({ ctx, input }) => listUploads(ctx, input.vdiskId)),
  get: procedure
    .meta({
      permission: 'vdisk.change',
      place: ofVdisk,
      rest: { method: 'GET', path: '/vdisks/{vdiskId}/uploads/{uploadId}', summary: 'Progress of an upload' },
    })
    .input(uploadGetInput)
    .output(uploadView)
    .query(({ ctx, input }) => readUpload(ctx, input)),
  create: procedure
    .meta({
      permission: 'vdisk.change',
      place: ofVdisk,
      rest: {
        method: 'POST',
        path: '/vdisks/{vdiskId}/uploads',
        summary: 'Begin the upload of an image',
        creates: '/vdisks/{vdiskId}/uploads/{id}',
      },
    })
    .input(uploadCreateInput)
    .output(uploadView)
    .mutation(({ ctx, input }) => createUpload(ctx, input)),
  remove: procedure
    .meta({
      permission: 'vdisk.change',
      place: ofVdisk,
      rest: { method: 'DELETE', path: '/vdisks/{vdiskId}/uploads/{uploadId}', summary: 'Delete an upload' },
    })
    .input(uploadGetInput)
    .output(uploadView)
    .mutation(({ ctx, input }) => deleteUpload(ctx, input)),
})
