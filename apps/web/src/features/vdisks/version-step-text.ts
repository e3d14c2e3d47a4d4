import type { Version } from './version-types'

/** The actions on a version, in the words of its button. */
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
  export: 'Export',
  label: 'Edit note and labels',
  delete: 'Delete',
} as const
export type Step = keyof typeof stepText

const nextSteps: Step[] = ['seal', 'discard', 'promote', 'cancelRelease', 'clearOverride']
/** Used if there is none of those. */
const otherwiseNext: Step[] = ['revert', 'startMaintenance']

interface Steps {
  /** The usual next step. */
  first: Step[]
  more: Step[]
}

type Held = { atEdges: Pick<Version['atEdges'][number], 'edgeId' | 'edgeName' | 'state' | 'isLayer'>[] }

/** The edges that can export it: those that hold all of it. */
export function holdersOf({ atEdges }: Held): Held['atEdges'] {
  return atEdges.filter(({ state, isLayer }) => state === 'present' && !isLayer)
}

/** The allowed steps as buttons and as a menu, where its note and labels can always be edited. */
export function arrangeSteps({ allowedSteps, ...held }: Pick<Version, 'allowedSteps'> & Held): Steps {
  const next = allowedSteps.filter((step) => nextSteps.includes(step))
  const first = next.length > 0 ? next : allowedSteps.filter((step) => otherwiseNext.includes(step)).slice(0, 1)
  const rest = allowedSteps.filter((step) => !first.includes(step))
  return {
    first,
    more: [
      ...rest.filter((step) => step !== 'delete'),
      ...(holdersOf(held).length > 0 ? (['export'] as const) : []),
      'label',
      ...rest.filter((step) => step === 'delete'),
    ],
  }
}
