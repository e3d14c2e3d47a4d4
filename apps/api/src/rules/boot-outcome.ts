import type { BootOutcome } from '@bootfarm/proto/boot-phases'
import type { BootReport } from '@bootfarm/proto/uplink'

/**
 * Returns how a reported boot ended, null while it lasts. One that ends silent in its firmware phase began with a
 * power-on, and no packet of the device followed.
 */
export function outcomeOfReport({ outcome }: Pick<BootReport, 'outcome'>): BootOutcome | null {
  if (outcome?.kind === 'silent' && outcome.phase === 'firmware') return 'no_response'
  return outcome?.kind ?? null
}
