import type { VdiskDetail, Version } from './version-types'

/** What can be done with a version, in the words of its button. */
export const stepText = {
  startMaintenance: 'New version',
  seal: 'Seal',
  discard: 'Discard',
  promote: 'Promote',
  cancelRelease: 'Cancel release',
  revert: 'Roll back to this version',
  override: 'Override',
  clearOverride: 'Clear override',
  merge: 'Merge',
  label: 'Edit note and labels',
  delete: 'Delete',
} as const
export type Step = keyof typeof stepText

interface Steps {
  /** What is usually done next. */
  first: Step[]
  more: Step[]
}

/** The steps that the API would take for a version as it is; docs/versions.md. */
export function stepsOf(
  version: Pick<Version, 'id' | 'access' | 'state' | 'sealedAt' | 'isSealing' | 'manifest'>,
  vdisk: Pick<VdiskDetail, 'maintenance' | 'defaultVersionId'>,
): Steps {
  if (version.isSealing) return { first: [], more: ['label'] }
  if (version.access === 'maintenance') return { first: ['seal', 'discard'], more: ['label'] }
  if (version.sealedAt === null) return { first: [], more: ['label'] }
  const inStore: Step[] =
    version.manifest === null ? [] : vdisk.maintenance === null ? ['startMaintenance', 'merge'] : ['merge']
  const rest: Step[] = [...inStore, 'label', 'delete']
  switch (version.access) {
    case 'test':
      return { first: ['promote'], more: rest }
    case 'pending':
      return { first: ['promote', 'cancelRelease'], more: rest }
    case 'override':
      return {
        first: ['clearOverride'],
        more: [...(vdisk.defaultVersionId === version.id ? [] : (['revert'] as const)), ...rest],
      }
    case 'default':
      return inStore.includes('startMaintenance')
        ? {
            first: ['startMaintenance'],
            more: ['override', ...rest.filter((step) => step !== 'startMaintenance')],
          }
        : { first: [], more: ['override', ...rest] }
    case null:
      return { first: ['revert'], more: ['override', ...rest] }
  }
}
