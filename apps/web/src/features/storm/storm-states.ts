import { type BootPhase, bootPhases, bootPhaseText } from '@bootfarm/proto/boot-phases'
import { phaseColour } from '../boots/phase-colour.ts'
import { bootingStates, type StormState } from './storm-model.ts'

/** How each state of a cell looks and is called; the order is that of the legend, and of cells by phase. */
export interface StateLook {
  title: string
  /** A CSS colour. */
  colour: string
  /** How much of the cell is filled, from below: the phases can be told apart without their colours. */
  level: number
  mark: 'none' | 'cross' | 'bar' | 'dot' | 'hollow'
}

const outcomes: Partial<Record<StormState, StateLook>> = {
  ready: { title: 'Ready', colour: 'var(--phase-ready)', level: 1, mark: 'none' },
  failed: { title: 'Failed', colour: 'var(--failed)', level: 1, mark: 'cross' },
  silent: { title: 'Timed out', colour: 'var(--silent)', level: 1, mark: 'bar' },
  no_response: { title: 'No response', colour: 'var(--silent)', level: 0, mark: 'cross' },
  superseded: { title: 'Restarted', colour: 'var(--ink-faint)', level: 0, mark: 'dot' },
  local_disk: { title: 'Local disk', colour: 'var(--ink-faint)', level: 1, mark: 'dot' },
  queued: { title: 'Waiting for power-on', colour: 'var(--live)', level: 0, mark: 'dot' },
  skipped: { title: 'Skipped', colour: 'var(--line-strong)', level: 0, mark: 'bar' },
  idle: { title: 'No boot', colour: 'var(--line-strong)', level: 0, mark: 'hollow' },
}

const bootingOrder: readonly StormState[] = bootingStates
const phaseSteps = bootingStates.length + 1

export const stateOrder: StormState[] = [
  'queued',
  ...bootingStates,
  'ready',
  'failed',
  'silent',
  'no_response',
  'superseded',
  'local_disk',
  'skipped',
  'idle',
]

export function stateLook(state: StormState): StateLook {
  const known = outcomes[state]
  if (known) return known
  const phase: BootPhase = bootPhases.find((name) => name === state) ?? 'firmware'
  const step = bootingOrder.indexOf(phase) + 1
  // A device in its firmware phase has not sent a packet yet.
  const title = phase === 'firmware' ? 'Waking' : bootPhaseText(phase).title
  return { title, colour: phaseColour(phase), level: step / phaseSteps, mark: 'none' }
}
