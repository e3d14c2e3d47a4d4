import { inSentence } from '../../../lib/in-sentence.ts'
import type { BootDetail } from '../boot-types'

export type GuestStep = NonNullable<BootDetail['guest']>['steps'][number]
export type GuestStepGroup = GuestStep['group']

/** In the order of a start. */
export const guestStepGroups = ['firmware', 'kernel', 'initramfs', 'system', 'unit'] as const satisfies GuestStepGroup[]

export const guestStepTitles: Record<GuestStepGroup, string> = {
  firmware: 'Firmware',
  kernel: 'Kernel',
  initramfs: 'Initramfs',
  system: 'OS',
  unit: 'Slowest units',
}

export function guestStepColour(group: GuestStepGroup): string {
  return `var(--step-${group})`
}

/** The steps that nobody reported, as one sentence; null if everything is there. */
export function unknownSteps(guest: BootDetail['guest'], running: boolean): string | null {
  if (guest === null || guest.steps.length === 0)
    return running
      ? 'The device has not reported its OS boot steps yet.'
      : 'The device did not report how long its firmware, kernel and services took.'
  const reported = new Set(guest.steps.map(({ group }) => group))
  const missing = guestStepGroups.filter((group) => !reported.has(group))
  if (missing.length === 0) return null
  return `Not reported by the device${running ? ' yet' : ''}: ${missing.map((group) => inSentence(guestStepTitles[group])).join(', ')}.`
}
