import { procedure, router } from '../http/trpc/trpc.ts'
import { cancelPromotion, getPromotion, promoteVersion, revertVersion } from '../promotion/public.ts'
import {
  cancelPromotionInput,
  promotedVersion,
  promoteInput,
  promotionInput,
  promotionOfVdisk,
  revertInput,
} from '../promotion/schema.ts'
import { adoptVersion } from './adopt-version.ts'
import { clearBootProfile } from './clear-boot-profile.ts'
import { discardMaintenance, sealVersion, startMaintenance } from './maintain-version.ts'
import { importVersion, mergeVersion } from './make-version.ts'
import { previewVersion } from './preview-version.ts'
import { getVersion } from './read-vdisks.ts'
import { cancelRelease, clearOverride, overrideVersion } from './release-version.ts'
import { versionGetInput, versionView } from './schema.ts'
import {
  adoptInput,
  cancelReleaseInput,
  changedVersion,
  clearBootProfileInput,
  clearOverrideInput,
  discarded,
  discardMaintenanceInput,
  importInput,
  mergeInput,
  overrideInput,
  previewInput,
  sealInput,
  startMaintenanceInput,
  versionPreview,
  versionWithJobs,
} from './version-schema.ts'

const ofVersion = { kind: 'version', id: 'versionId' } as const
const ofVdisk = { kind: 'vdisk', id: 'vdiskId' } as const

export const versionRouter = router({
  get: procedure
    .meta({
      permission: 'vdisk.read',
      place: ofVersion,
      rest: { method: 'GET', path: '/versions/{versionId}', summary: 'A version of a vDisk' },
    })
    .input(versionGetInput)
    .output(versionView)
    .query(({ ctx, input }) => getVersion(ctx, input)),
  preview: procedure
    .meta({
      permission: 'vdisk.read',
      place: ofVersion,
      rest: {
        method: 'GET',
        path: '/versions/{versionId}/preview',
        summary: 'Preview what a step does to devices and stores',
      },
    })
    .input(previewInput)
    .output(versionPreview)
    .query(({ ctx, input }) => previewVersion(ctx, input)),
  startMaintenance: procedure
    .meta({
      permission: 'vdisk.change',
      place: ofVersion,
      rest: {
        method: 'POST',
        path: '/versions/{versionId}/maintenance',
        summary: 'Start a new version based on this one, written by one device',
      },
    })
    .input(startMaintenanceInput)
    .output(changedVersion)
    .mutation(({ ctx, input }) => startMaintenance(ctx, input)),
  seal: procedure
    .meta({
      permission: 'vdisk.change',
      place: ofVersion,
      rest: { method: 'POST', path: '/versions/{versionId}/seal', summary: 'Seal a version for testing' },
    })
    .input(sealInput)
    .output(versionWithJobs)
    .mutation(({ ctx, input }) => sealVersion(ctx, input)),
  discardMaintenance: procedure
    .meta({
      permission: 'vdisk.change',
      place: ofVersion,
      rest: {
        method: 'POST',
        path: '/versions/{versionId}/discard',
        summary: 'Discard the version in maintenance and its writes',
      },
    })
    .input(discardMaintenanceInput)
    .output(discarded)
    .mutation(({ ctx, input }) => discardMaintenance(ctx, input)),
  promote: procedure
    .meta({
      permission: 'vdisk.change',
      place: ofVersion,
      rest: {
        method: 'POST',
        path: '/versions/{versionId}/promote',
        summary: 'Promote a version in test: when edges hold it, now, or at a set time',
      },
    })
    .input(promoteInput)
    .output(promotedVersion)
    .mutation(({ ctx, input }) => promoteVersion(ctx, input)),
  cancelRelease: procedure
    .meta({
      permission: 'vdisk.change',
      place: ofVdisk,
      rest: {
        method: 'POST',
        path: '/vdisks/{vdiskId}/cancel-release',
        summary: 'Cancel a scheduled release',
      },
    })
    .input(cancelReleaseInput)
    .output(changedVersion)
    .mutation(({ ctx, input }) => cancelRelease(ctx, input)),
  promotion: procedure
    .meta({
      permission: 'vdisk.read',
      place: ofVdisk,
      rest: {
        method: 'GET',
        path: '/vdisks/{vdiskId}/promotion',
        summary: 'The promotion or revert that waits for copies at edges',
      },
    })
    .input(promotionInput)
    .output(promotionOfVdisk)
    .query(({ ctx, input }) => getPromotion(ctx, input.vdiskId)),
  cancelPromotion: procedure
    .meta({
      permission: 'vdisk.change',
      place: ofVdisk,
      rest: {
        method: 'POST',
        path: '/vdisks/{vdiskId}/cancel-promotion',
        summary: 'Cancel a promotion or a revert that waits',
      },
    })
    .input(cancelPromotionInput)
    .output(changedVersion)
    .mutation(({ ctx, input }) => cancelPromotion(ctx, input)),
  revert: procedure
    .meta({
      permission: 'vdisk.change',
      place: ofVersion,
      rest: {
        method: 'POST',
        path: '/versions/{versionId}/revert',
        summary: 'Roll back to a version that was released before',
      },
    })
    .input(revertInput)
    .output(promotedVersion)
    .mutation(({ ctx, input }) => revertVersion(ctx, input)),
  override: procedure
    .meta({
      permission: 'vdisk.change',
      place: ofVersion,
      rest: {
        method: 'POST',
        path: '/versions/{versionId}/override',
        summary: 'Set an override: production devices boot this version until it is cleared',
      },
    })
    .input(overrideInput)
    .output(changedVersion)
    .mutation(({ ctx, input }) => overrideVersion(ctx, input)),
  clearOverride: procedure
    .meta({
      permission: 'vdisk.change',
      place: ofVdisk,
      rest: { method: 'POST', path: '/vdisks/{vdiskId}/clear-override', summary: 'Clear the override' },
    })
    .input(clearOverrideInput)
    .output(changedVersion)
    .mutation(({ ctx, input }) => clearOverride(ctx, input)),
  merge: procedure
    .meta({
      permission: 'vdisk.change',
      place: ofVersion,
      rest: {
        method: 'POST',
        path: '/versions/{versionId}/merge',
        summary: 'Merge a version into a new base or one update',
      },
    })
    .input(mergeInput)
    .output(versionWithJobs)
    .mutation(({ ctx, input }) => mergeVersion(ctx, input)),
  import: procedure
    .meta({
      permission: 'vdisk.change',
      place: [{ kind: 'edge', id: 'edgeId' }, ofVdisk],
      rest: {
        method: 'POST',
        path: '/vdisks/{vdiskId}/import',
        summary: 'Import an image as a version',
      },
    })
    .input(importInput)
    .output(versionWithJobs)
    .mutation(({ ctx, input }) => importVersion(ctx, input)),
  adopt: procedure
    .meta({
      permission: 'vdisk.change',
      place: [
        { kind: 'edge', id: 'edgeId' },
        { ...ofVdisk, optional: true },
        { kind: 'farm', id: 'farmId', optional: true },
      ],
      rest: {
        method: 'POST',
        path: '/edges/{edgeId}/images/{versionId}/adopt',
        summary: 'Adopt an image that was imported on an edge by hand',
      },
    })
    .input(adoptInput)
    .output(versionWithJobs)
    .mutation(({ ctx, input }) => adoptVersion(ctx, input)),
  clearBootProfile: procedure
    .meta({
      permission: 'vdisk.change',
      place: ofVersion,
      rest: {
        method: 'POST',
        path: '/versions/{versionId}/clear-boot-profile',
        summary: 'Clear what edges have learned from boots of a version',
      },
    })
    .input(clearBootProfileInput)
    .output(versionWithJobs)
    .mutation(({ ctx, input }) => clearBootProfile(ctx, input)),
})
