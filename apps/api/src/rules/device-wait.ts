import type { BootCause, BootOutcome } from '@bootfarm/proto/boot-phases'
import { edgeOnlineWithinMs } from '@bootfarm/proto/uplink'
import { z } from 'zod'

export const waitReasons = ['asked_another_edge', 'edge_not_heard'] as const

const namedEdge = z.object({ id: z.uuid(), name: z.string() })

/** Why a device stands still, or may: what it wrote is at one edge alone, and that one is not there. */
export const deviceWait = z.object({
  /** `asked_another_edge`: the device did not reach its edge, and asked another one, in vain. `edge_not_heard`: nobody heard the device, but the edge that has its writes is away. */
  reason: z.enum(waitReasons),
  /** Has what the device wrote. */
  edge: namedEdge,
  /** Which it asked; null where nobody was asked. */
  asked: namedEdge.nullable(),
  /** When it asked, or that edge was heard last or was removed; null: never heard. */
  since: z.iso.datetime().nullable(),
  sentence: z.string(),
  /** What to do, and what of its writes is lost by it. */
  remedy: z.string(),
})
export type DeviceWait = z.infer<typeof deviceWait>

/** An edge as far as a wait needs it. */
export interface WaitEdge {
  id: string
  name: string
  heartbeatAt: Date | null
  revokedAt: Date | null
}

/** What another edge said of the device. */
export interface ReportedWait {
  edge: WaitEdge
  asked: { id: string; name: string }
  since: Date
}

interface WaitFacts {
  /** Of the boot. */
  reported: ReportedWait | null
  /** The device's newest one. */
  boot: {
    outcome: BootOutcome | null
    failedCause: string | null
    generated: boolean
    /** `write_cache_held` of the boot. */
    held: unknown
    silentSince: Date | null
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

/** Whether a device may stand still in a boot that ended so: its edge, where it comes back, may take it for silent. */
export function isStillThere(outcome: ReportedOutcome): boolean {
  if (outcome === undefined) return true
  const { kind, cause } = outcome
  return kind === 'ready' || kind === 'silent' || cause === 'guest_stopped_reading'
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
      ? ` The control plane hears ${edge.name}.`
      : ` The control plane does not hear ${edge.name} either.`
  const goesOn = 'The device goes on by itself then, with all that it wrote.'
  const bring = isOnline
    ? `Look at the network between ${edge.name} and the device. ${goesOn} `
    : bringBack(edge, goesOn)
  return {
    reason: 'asked_another_edge',
    edge: { id: edge.id, name: edge.name },
    asked,
    since: since.toISOString(),
    sentence: `The device waits for ${edge.name}, which alone has what it wrote: it had no answer there, and ${asked.name}, which it asked, does not give it its disk without that.${heard}`,
    remedy: `${bring}${ifGone(edge, outlivesBoots)}`,
  }
}

function notHeard(edge: WaitEdge, outlivesBoots: boolean): DeviceWait {
  const stands = outlivesBoots ? 'the device stands still, and does not start' : 'the device stands still'
  const { name, revokedAt, heartbeatAt } = edge
  return {
    reason: 'edge_not_heard',
    edge: { id: edge.id, name },
    asked: null,
    since: (revokedAt ?? heartbeatAt)?.toISOString() ?? null,
    sentence: revokedAt
      ? `What the device writes is at ${name}, which was removed: without it ${stands}.`
      : `What the device writes is at ${name}, which the control plane does not hear: if ${name} is down, ${stands}.`,
    remedy: `${bringBack(edge, `If only its way to the control plane is cut, its devices run.`)}${ifGone(edge, outlivesBoots)}`,
  }
}

function bringBack({ name, revokedAt }: WaitEdge, then: string): string {
  return revokedAt ? '' : `Bring ${name} back: look at its power, its network and its program. ${then} `
}

function ifGone({ name, revokedAt }: WaitEdge, outlivesBoots: boolean): string {
  if (revokedAt)
    return outlivesBoots
      ? `Move the home of its writes to another edge and give up what ${name} keeps (on the device’s page, or by device.moveHome): that is lost for good.`
      : `Start the device again: what it wrote since its last start is lost.`
  return outlivesBoots
    ? `If ${name} is gone for good, revoke it and move the home of its writes to another edge (on the device’s page, or by device.moveHome): what ${name} keeps of the device is lost.`
    : `If ${name} is gone for good, start the device again: what it wrote since its last start is lost.`
}
