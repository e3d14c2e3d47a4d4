import { procedure, router } from '../http/trpc/trpc.ts'
import { getRetention, previewRetention } from './get-retention.ts'
import {
  retentionGetInput,
  retentionPreview,
  retentionPreviewInput,
  retentionSetInput,
  retentionView,
} from './schema.ts'
import { setRetention } from './set-retention.ts'

const ofVdisk = { kind: 'vdisk', id: 'vdiskId' } as const

export const retentionRouter = router({
  get: procedure
    .meta({
      permission: 'vdisk.read',
      place: ofVdisk,
      rest: { method: 'GET', path: '/vdisks/{vdiskId}/retention', summary: 'How many released versions stay' },
    })
    .input(retentionGetInput)
    .output(retentionView)
    .query(({ ctx, input }) => getRetention(ctx, input.vdiskId)),
  preview: procedure
    .meta({
      permission: 'vdisk.read',
      place: ofVdisk,
      rest: {
        method: 'GET',
        path: '/vdisks/{vdiskId}/retention/preview',
        summary: 'Preview which versions retention deletes',
      },
    })
    .input(retentionPreviewInput)
    .output(retentionPreview)
    .query(({ ctx, input }) => previewRetention(ctx, input)),
  set: procedure
    .meta({
      permission: 'vdisk.change',
      place: ofVdisk,
      rest: {
        method: 'PUT',
        path: '/vdisks/{vdiskId}/retention',
        summary: 'Choose how many released versions stay',
      },
    })
    .input(retentionSetInput)
    .output(retentionView)
    .mutation(({ ctx, input }) => setRetention(ctx, input)),
})
