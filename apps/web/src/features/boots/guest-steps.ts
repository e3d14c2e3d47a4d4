import type { BootDetail } from './boot-types'

export type GuestStep = NonNullable<BootDetail['guest']>['steps'][number]
export type GuestStepGroup = GuestStep['group']

/** In the order of a start. */
export const guestStepGroups = ['firmware', 'kernel', 'initramfs', 'system', 'unit'] as const satisfies GuestStepGroup[]

export const guestStepTitles: Record<GuestStepGroup, string> = {
  firmware: 'Firmware',
  kernel: 'Kernel',
  initramfs: 'Initramfs',
  system: 'System',
  unit: 'Slowest units',
}

export function guestStepColour(group: GuestStepGroup): string {
  return `var(--step-${group})`
}

/** What a reader would miss and nobody reported, as one sentence; null where everything is there. */
export function unknownSteps(guest: BootDetail['guest'], running: boolean): string | null {
  if (guest === null || guest.steps.length === 0)
    return running
      ? 'The device has not reported its own steps yet.'
      : 'No report from the device: how long its firmware, its kernel and its services took is not known.'
  const reported = new Set(guest.steps.map(({ group }) => group))
  const missing = guestStepGroups.filter((group) => !reported.has(group))
  if (missing.length === 0) return null
  return `Not reported by the device${running ? ' yet' : ''}: ${missing.map((group) => guestStepTitles[group].toLowerCase()).join(', ')}.`
}
