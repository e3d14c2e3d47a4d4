import { settingPolicies } from '../http/trpc/setting-policies.ts'
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
const policies = settingPolicies({
  of: ofVdisk,
  path: '/vdisks/{vdiskId}/retention',
  permission: 'vdisk.read',
  changedBy: 'vdisk.change',
  summaries: { get: 'How many released versions stay', set: 'Choose how many released versions stay' },
})

export const retentionRouter = router({
  get: procedure
    .meta(policies.get)
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
    .meta(policies.set)
    .input(retentionSetInput)
    .output(retentionView)
    .mutation(({ ctx, input }) => setRetention(ctx, input)),
})
