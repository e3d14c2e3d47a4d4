import { procedure, router } from '../http/trpc/trpc.ts'
import { adoptVersion } from './adopt-version.ts'
import { clearBootProfile } from './clear-boot-profile.ts'
import { discardMaintenance, sealVersion, startMaintenance } from './maintain-version.ts'
import { importVersion, mergeVersion } from './make-version.ts'
import { previewVersion } from './preview-version.ts'
import { cancelRelease, clearOverride, overrideVersion, promoteVersion, revertVersion } from './release-version.ts'
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
  promoteInput,
  revertInput,
  sealInput,
  startMaintenanceInput,
  versionPreview,
  versionWithJobs,
} from './version-schema.ts'

const ofVersion = { kind: 'version', id: 'versionId' } as const
const ofVdisk = { kind: 'vdisk', id: 'vdiskId' } as const

export const versionRouter = router({
  preview: procedure
    .meta({
      permission: 'vdisk.read',
      place: ofVersion,
      rest: {
        method: 'GET',
        path: '/versions/{versionId}/preview',
        summary: 'What will happen to devices and stores, before it is done',
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
        summary: 'Begin the next version above this one, written by one device',
      },
    })
    .input(startMaintenanceInput)
    .output(changedVersion)
    .mutation(({ ctx, input }) => startMaintenance(ctx, input)),
  seal: procedure
    .meta({
      permission: 'vdisk.change',
      place: ofVersion,
      rest: {
        method: 'POST',
        path: '/versions/{versionId}/seal',
        summary: 'Seal what was written, for testing',
      },
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
        summary: 'Discard the version in maintenance and what was written',
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
        summary: 'Make a version in test the default, now or at an instant',
      },
    })
    .input(promoteInput)
    .output(changedVersion)
    .mutation(({ ctx, input }) => promoteVersion(ctx, input)),
  cancelRelease: procedure
    .meta({
      permission: 'vdisk.change',
      place: ofVdisk,
      rest: {
        method: 'POST',
        path: '/vdisks/{vdiskId}/cancel-release',
        summary: 'Take back the release to come',
      },
    })
    .input(cancelReleaseInput)
    .output(changedVersion)
    .mutation(({ ctx, input }) => cancelRelease(ctx, input)),
  revert: procedure
    .meta({
      permission: 'vdisk.change',
      place: ofVersion,
      rest: {
        method: 'POST',
        path: '/versions/{versionId}/revert',
        summary: 'Make a version the default that was released before',
      },
    })
    .input(revertInput)
    .output(changedVersion)
    .mutation(({ ctx, input }) => revertVersion(ctx, input)),
  override: procedure
    .meta({
      permission: 'vdisk.change',
      place: ofVersion,
      rest: {
        method: 'POST',
        path: '/versions/{versionId}/override',
        summary: 'Let production devices boot this version until that is taken back',
      },
    })
    .input(overrideInput)
    .output(changedVersion)
    .mutation(({ ctx, input }) => overrideVersion(ctx, input)),
  clearOverride: procedure
    .meta({
      permission: 'vdisk.change',
      place: ofVdisk,
      rest: {
        method: 'POST',
        path: '/vdisks/{vdiskId}/clear-override',
        summary: 'Take the override back',
      },
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
        summary: 'Make a new base, or a merged update, of a version',
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
        summary: 'Make a version of a raw image in an edge’s store',
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
        summary: 'Make a version of an image that was imported by hand at an edge',
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
        summary: 'Let edges forget what they have learned of its boots',
      },
    })
    .input(clearBootProfileInput)
    .output(versionWithJobs)
    .mutation(({ ctx, input }) => clearBootProfile(ctx, input)),
})
