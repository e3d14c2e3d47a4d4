import type { BootOutcome } from '@bootfarm/proto/boot-phases'
import { edgeOnlineWithinMs, type powerOrders } from '@bootfarm/proto/uplink'
import { z } from 'zod'

const deviceStates = [
  'booting',
  'running',
  'restarting',
  'off',
  'not_heard',
  'local_disk',
  'failed',
  'unknown',
] as const

/** The current state of a device, according to the reports of its newest boot. */
export const deviceState = z.object({
  state: z.enum(deviceStates),
  since: z.iso.datetime().nullable().describe('Null where the state is unknown.'),
})
export type DeviceState = z.infer<typeof deviceState>

interface ReportedBoot {
  startedAt: Date
  /** When its newest report arrived. */
  updatedAt: Date
  outcome: BootOutcome | null
  totalUs: bigint
  generated: boolean
  /** For a device that became ready: its edge has not heard it since. */
  silentSince: Date | null
  /** The orders that the device took in this boot, the last one first. */
  takenPowerOrders: { order: (typeof powerOrders)[number]; takenAt: Date | null }[]
  edge: { heartbeatAt: Date | null; revokedAt: Date | null }
}

/**
 * A machine that is switched off by hand reports nothing: if it reported before, its edge notices the silence;
 * otherwise `running` holds until its next boot or a power order that it took. A boot whose edge is unreachable may be
 * long over.
 */
export function deviceStateOf(boot: ReportedBoot, now: Date): DeviceState {
  if (boot.generated) return { state: 'unknown', since: null }
  if (boot.outcome === null)
    return isHeardOf(boot, now)
      ? { state: 'booting', since: boot.startedAt.toISOString() }
      : { state: 'unknown', since: null }
  if (boot.outcome === 'failed') return { state: 'failed', since: endOf(boot) }
  if (boot.outcome === 'local_disk') return { state: 'local_disk', since: endOf(boot) }
  if (boot.outcome !== 'ready') return { state: 'unknown', since: null }
  const taken = boot.takenPowerOrders[0]
  if (!taken?.takenAt)
    return boot.silentSince
      ? { state: 'not_heard', since: earlier(boot.silentSince, boot.updatedAt) }
      : { state: 'running', since: endOf(boot) }
  const since = taken.takenAt.toISOString()
  return { state: taken.order === 'power_off' ? 'off' : 'restarting', since }
}

function isHeardOf({ edge, updatedAt }: ReportedBoot, now: Date): boolean {
  if (edge.revokedAt) return false
  const heardAt = Math.max(edge.heartbeatAt?.getTime() ?? 0, updatedAt.getTime())
  return now.getTime() - heardAt < edgeOnlineWithinMs
}

/** The edge's clock may be wrong: nothing that was reported happened after its report. */
function endOf({ startedAt, totalUs, updatedAt }: ReportedBoot): string {
  return earlier(new Date(startedAt.getTime() + Number(totalUs) / 1000), updatedAt)
}

function earlier(a: Date, b: Date): string {
  return (a < b ? a : b).toISOString()
}
