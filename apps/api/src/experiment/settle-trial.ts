import type { BootOutcome } from '@bootfarm/proto/boot-phases'
import { z } from 'zod'

/** What a boot means for its trial: pure. */

export interface TrialEnd {
  state: 'ready' | 'failed' | 'dropped'
  reason: string | null
  durationUs: bigint | null
  phases?: { name: string; durationUs: number }[]
  endedAt: Date
}

interface Boot {
  startedAt: Date
  outcome: BootOutcome | null
  failedCause: string | null
  durationUs: bigint | null
  phases: unknown
}

interface Asked {
  /** Why the boot did not have the settings; null: it had them. */
  reason: string | null
  bootSeconds: number
  now: Date
}

const phases = z.array(z.object({ name: z.string(), durationUs: z.number().nullish() }))

/** Null while the boot lasts. @param boot null: it is there no more */
export function settleTrial(boot: Boot | null, { reason, bootSeconds, now }: Asked): TrialEnd | null {
  const ended = (state: TrialEnd['state'], why: string | null): TrialEnd => {
    return { state, reason: why, durationUs: null, endedAt: now }
  }
  if (!boot) return ended('dropped', 'its boot is not kept any more')
  const { outcome } = boot
  const isLate = now.getTime() - boot.startedAt.getTime() > bootSeconds * 1000
  if (outcome === null) return isLate ? ended('failed', `not ready within ${bootSeconds} s`) : null
  if (reason !== null) return ended('dropped', reason)
  switch (outcome) {
    case 'superseded':
      return ended('dropped', 'its device started again in the middle of it')
    case 'local_disk':
      return ended('dropped', 'its device booted its own disk')
    case 'failed':
      return ended('failed', boot.failedCause)
    case 'silent':
    case 'no_response':
      return ended('failed', 'its device fell silent')
    case 'ready':
  }
  if (boot.durationUs === null) return ended('dropped', 'its edge did not say how long it took')
  if (Number(boot.durationUs) > bootSeconds * 1_000_000) return ended('failed', `not ready within ${bootSeconds} s`)
  const read = phases.safeParse(boot.phases)
  return {
    ...ended('ready', null),
    durationUs: boot.durationUs,
    phases: read.success
      ? read.data.flatMap(({ name, durationUs }) => (typeof durationUs === 'number' ? [{ name, durationUs }] : []))
      : [],
  }
}
