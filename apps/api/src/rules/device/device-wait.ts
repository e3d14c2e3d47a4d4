import type { BootCause, BootOutcome } from '@bootfarm/proto/boot-phases'
import { edgeOnlineWithinMs, type LostReport, lostReport } from '@bootfarm/proto/uplink'
import { z } from 'zod'

const waitReasons = ['asked_another_edge', 'edge_not_heard', 'lost_disk'] as const

const namedEdge = z.object({ id: z.uuid(), name: z.string() })

/** Why a device waits, or may wait: its writes are at one edge that is away, or it has lost its disk for good. */
export const deviceWait = z.object({
  reason: z
    .enum(waitReasons)
    .describe(
      '`asked_another_edge`: the device did not reach its edge, and asked another one in vain. `edge_not_heard`: nobody heard the device, but the edge that has its writes is away. `lost_disk`: its session is lost for good, and it waits to be restarted, or restarts by itself.',
    ),
  edge: namedEdge.describe('Has what the device wrote; with `lost_disk` the edge that it reports to.'),
  asked: namedEdge.nullable().describe('The edge that it asked; null if it asked none.'),
  since: z.iso
    .datetime()
    .nullable()
    .describe('When it asked or lost its disk, or when that edge was last heard or removed; null: never heard.'),
  restartsAt: z.iso
    .datetime()
    .nullable()
    .describe('When a device that has lost its disk restarts by itself; null: it does not.'),
  sentence: z.string(),
  remedy: z.string().describe('The remedy, and which of its writes it loses.'),
})
export type DeviceWait = z.infer<typeof deviceWait>

/** An edge as far as a wait needs it. */
export interface WaitEdge {
  id: string
  name: string
  heartbeatAt: Date | null
  revokedAt: Date | null
}

/** Another edge's report about the device. */
export interface ReportedWait {
  edge: WaitEdge
  asked: { id: string; name: string }
  since: Date
}

interface WaitFacts {
  reported: ReportedWait | null
  /** The device's newest one. */
  boot: {
    outcome: BootOutcome | null
    failedCause: string | null
    generated: boolean
    /** `write_cache_held` of the boot. */
    held: unknown
    silentSince: Date | null
    /** `lost` of the boot. */
    lost: unknown
    startedAt: Date
    /** When its newest report arrived. */
    updatedAt: Date
    /** It took an order to switch off or to restart. */
    hasTakenOrder: boolean
    edge: WaitEdge
  } | null
  /** The device's home, where what it would write now outlives its boots. */
  home: WaitEdge | null
}

/** Null: nothing is known to be in its way. */
export function deviceWaitOf({ reported, boot, home }: WaitFacts, now: Date): DeviceWait | null {
  const isThere = boot !== null && !boot.generated && !boot.hasTakenOrder
  const lost = isThere && !boot.silentSince ? lostReport.safeParse(boot.lost).data : undefined
  if (isThere && lost) return lostDisk(boot, lost)
  if (reported && isThere && isStillThere(outcomeOf(boot)))
    return askedInVain(reported, { outlivesBoots: home?.id === reported.edge.id || outlives(boot.held), now })
  const writesAtEdge = isThere && (boot.outcome === null || boot.outcome === 'ready') && !boot.silentSince
  if (writesAtEdge && isAtTheEdge(boot.held) && !isHeard(boot.edge, now))
    return notHeard(boot.edge, outlives(boot.held))
  return home && !isHeard(home, now) ? notHeard(home, true) : null
}

function outcomeOf({ outcome, failedCause }: NonNullable<WaitFacts['boot']>): ReportedOutcome {
  if (outcome === null) return undefined
  return failedCause === null ? { kind: outcome } : { kind: outcome, cause: failedCause as BootCause }
}

type ReportedOutcome = { kind: BootOutcome; cause?: BootCause } | undefined

/** Returns whether a device may wait in a boot that ended so: its edge, when it returns, may consider it silent. */
export function isStillThere(outcome: ReportedOutcome): boolean {
  if (outcome === undefined) return true
  const { kind, cause } = outcome
  return ['ready', 'silent', 'no_response'].includes(kind) || cause === 'guest_stopped_reading'
}

const heldClass = z.object({ class: z.string() })

function classOf(held: unknown): string | null {
  return heldClass.safeParse(held).data?.class ?? null
}

function isAtTheEdge(held: unknown): boolean {
  return ['edge', 'edge_persistent', 'private', 'device_ram_overflow'].includes(classOf(held) ?? '')
}

function outlives(held: unknown): boolean {
  return ['edge_persistent', 'private'].includes(classOf(held) ?? '')
}

function isHeard({ heartbeatAt, revokedAt }: WaitEdge, now: Date): boolean {
  return revokedAt === null && heartbeatAt !== null && now.getTime() - heartbeatAt.getTime() < edgeOnlineWithinMs
}

function askedInVain(
  { edge, asked, since }: ReportedWait,
  { outlivesBoots, now }: { outlivesBoots: boolean; now: Date },
): DeviceWait {
  const isOnline = isHeard(edge, now)
  const heard = edge.revokedAt
    ? ''
    : isOnline
      ? ` The control plane receives reports from ${edge.name}.`
      : ` The control plane does not receive reports from ${edge.name} either.`
  const goesOn = 'The device then continues by itself with all of its writes.'
  const bring = isOnline ? `Check the network between ${edge.name} and the device. ${goesOn} ` : bringBack(edge, goesOn)
  return {
    reason: 'asked_another_edge',
    edge: { id: edge.id, name: edge.name },
    asked,
    since: since.toISOString(),
    restartsAt: null,
    sentence: `The device is waiting for ${edge.name}, the only edge with its writes. That edge did not answer the device, and ${asked.name} cannot serve the disk without the writes.${heard}`,
    remedy: `${bring}${ifGone(edge, outlivesBoots)}`,
  }
}

function notHeard(edge: WaitEdge, outlivesBoots: boolean): DeviceWait {
  const stands = outlivesBoots ? 'the device is stopped and cannot start' : 'the device is stopped'
  const { name, revokedAt, heartbeatAt } = edge
  return {
    reason: 'edge_not_heard',
    edge: { id: edge.id, name },
    asked: null,
    since: (revokedAt ?? heartbeatAt)?.toISOString() ?? null,
    restartsAt: null,
    sentence: revokedAt
      ? `The writes of this device are stored on ${name}, which was removed. Without it, ${stands}.`
      : `Blocked: this device’s writes are stored only on ${name}, which is offline. If ${name} is down, ${stands}.`,
    remedy: `${bringBack(edge, `If only its connection to the control plane is down, its devices keep running.`)}${ifGone(edge, outlivesBoots)}`,
  }
}

/** How a device without its disk continues: nothing brings the disk back. */
function lostDisk({ edge, startedAt, updatedAt }: NonNullable<WaitFacts['boot']>, lost: LostReport): DeviceWait {
  const { atUs, restartAtUs } = lost
  // The edge's clock may be wrong: nothing that was reported happened after its report.
  const lostAt = Math.min(startedAt.getTime() + atUs / 1000, updatedAt.getTime())
  const restarts = restartAtUs !== undefined
  return {
    reason: 'lost_disk',
    edge: { id: edge.id, name: edge.name },
    asked: null,
    since: new Date(lostAt).toISOString(),
    restartsAt: restarts ? new Date(lostAt + (restartAtUs - atUs) / 1000).toISOString() : null,
    sentence: `The device has lost its disk for good: ${lossOf(lost, edge.name)}. ${
      restarts ? 'It restarts by itself.' : 'It waits to be restarted.'
    }`,
    remedy: `${
      restarts ? 'To restart it earlier, order a restart.' : 'Order a restart.'
    } The device takes the order within 20 seconds. What it has in memory is lost.`,
  }
}

function lossOf({ reason, refusal }: LostReport, edge: string): string {
  switch (refusal ?? reason) {
    case 'token_refused':
      return `${edge} does not know its boot any more`
    case 'version_missing':
      return `${edge} does not have its version any more`
    case 'version_changed':
      return `${edge} has another version than the one that it booted`
    case 'no_cipher':
      return `it has no cipher in common with ${edge}`
    case 'cache_lost':
      return `${edge} has lost its writes`
    case 'cache_version':
      return 'its writes belong to another version'
    case 'cache_failed':
      return `${edge} cannot open its write cache`
    case 'cache_elsewhere':
      return `${edge} does not have its writes`
    case 'identity_refused':
      return `${edge} did not accept its key`
    case 'busy':
    case 'refused':
      return `${edge} refused to continue its boot`
  }
}

function bringBack({ name, revokedAt }: WaitEdge, then: string): string {
  return revokedAt ? '' : `Bring ${name} back online: check its power, its network and its program. ${then} `
}

function ifGone({ name, revokedAt }: WaitEdge, outlivesBoots: boolean): string {
  if (revokedAt)
    return outlivesBoots
      ? `Move the persistent-write location to another edge and discard what ${name} stores (on the device’s page, or with device.moveHome). Those writes are permanently lost.`
      : `Restart the device. Its writes since the last start are lost.`
  return outlivesBoots
    ? `If ${name} is permanently gone, revoke it and move the persistent-write location to another edge (on the device’s page, or with device.moveHome). The writes stored on ${name} are lost.`
    : `If ${name} is permanently gone, restart the device. Its writes since the last start are lost.`
}
