import { bootCauses, bootOutcomes, bootPhases, valueSources } from '@bootfarm/proto/boot-phases'
import { type GuestReport, guestStepGroups, powerOrders, streamCiphers } from '@bootfarm/proto/uplink'
import { z } from 'zod'
import { deviceKeyLabel } from '../rules/device-key.ts'
import { deviceState } from '../rules/device-state.ts'
import { deviceWait } from '../rules/device-wait.ts'
import { pageInput, pageOf } from '../rules/object-fields.ts'
import { count, instant, uuid } from '../rules/scalars.ts'
import { writeCacheView } from '../rules/write-cache.ts'
import { instantAt } from './boot-times.ts'
import { readTimesView } from './read-times.ts'

/** A list as long as anybody reads; the file has all of them. */
export const capturePacketsShownMax = 1000

/** The packets of a boot before its stream, kept as a pcap file. */
const captureSummary = z.object({ receivedAt: z.iso.datetime(), packetCount: count, sizeBytes: count })

export const bootCaptureInput = z.object({ bootId: uuid })

/** Null where no packets of the boot are kept. */
export const bootCapture = captureSummary
  .extend({
    /** In the file's order, at most `capturePacketsShownMax`. */
    packets: z.array(
      z.object({
        /** µs since the first packet in the file. */
        atUs: z.number().int(),
        /** `other`: according to its addresses, neither from nor to the boot's device alone. */
        direction: z.enum(['from_device', 'to_device', 'other']),
        protocol: z.enum(['dhcp', 'tftp', 'http', 'other']),
        /** In words, e.g. `TFTP ACK of block 145`; derived from untrusted bytes, printable ASCII only. */
        what: z.string(),
        /** On the wire. */
        sizeBytes: count,
      }),
    ),
  })
  .nullable()
export type BootCapture = z.infer<typeof bootCapture>
export type CapturedPacket = NonNullable<BootCapture>['packets'][number]

export const consoleLinesMax = 2000
export const consoleBytesMax = 200 * 1024

export const bootConsoleInput = z.object({
  bootId: z.uuid(),
  /** `next` of the previous answer; without it, from the start of the boot. */
  after: z.number().int().nonnegative().optional(),
})

/** Null where no console is kept for the boot's device. */
export const bootConsole = z
  .object({
    lines: z.array(
      z.object({
        /** Milliseconds since the start of the boot; negative for firmware output before its first packet. */
        atMs: z.number().int(),
        /** Untrusted, without control characters. */
        text: z.string(),
      }),
    ),
    next: z.number().int().nonnegative(),
    /** There is more of this boot behind `next` now: an answer is bounded. */
    more: z.boolean(),
    /** The device has begun its next boot: nothing comes any more. Until then it may write at any time. */
    over: z.boolean(),
  })
  .nullable()
export type BootConsole = z.infer<typeof bootConsole>

const microseconds = z.number().int()

/** A device's own report: its texts are untrusted. */
const guestView = z.object({
  /** Start of the kernel's clock, in µs since the start of the boot; inferred by the edge. */
  kernelStartUs: microseconds,
  /** By start. Steps of the firmware start before the boot's first packet, below 0. */
  steps: z.array(
    z.object({
      group: z.enum(guestStepGroups),
      name: z.string(),
      /** µs since the start of the boot, like the phases. */
      startUs: microseconds,
      durationUs: z.number().int().nonnegative(),
    }),
  ),
  /** When the device reported the fill level of its write cache; null if it never did. */
  writeCacheAt: z.iso.datetime().nullable(),
})
type GuestView = z.infer<typeof guestView>

/** @param startedAt the start of the boot */
export function guestViewOf(guest: GuestReport, startedAt: Date): GuestView {
  const { kernelStartUs, steps, writeCache } = guest
  return {
    kernelStartUs,
    steps: steps
      .map((step) => ({ ...step, startUs: exact(kernelStartUs + step.startUs) }))
      .sort((a, b) => a.startUs - b.startUs),
    writeCacheAt: writeCache ? instantAt(startedAt, writeCache.atUs) : null,
  }
}

/** Two numbers of a device may add up to more than JSON keeps exact. */
function exact(us: number): number {
  return Math.max(Number.MIN_SAFE_INTEGER, Math.min(Number.MAX_SAFE_INTEGER, us))
}

const bootPhaseView = z.object({
  name: z.enum(bootPhases),
  /** µs since the start of the boot. */
  startUs: count,
  /** Null while the phase lasts. */
  durationUs: count.nullable(),
  source: z.enum(valueSources),
  bytesIn: count,
  bytesOut: count,
  packetsIn: count,
  packetsOut: count,
  retries: count,
  missingFragments: count,
  reads: count,
  /** Index i counts reads of (2^(i+8), 2^(i+9)] bytes, index 0 all up to 512. */
  readSizes: z.array(count),
  /** Silences over 250 ms; `atUs` since the start of the boot. */
  gaps: z.array(z.object({ atUs: count, durationUs: count })),
})
export type BootPhaseView = z.infer<typeof bootPhaseView>

/** A boot as lists and live updates show it. */
export const bootSummary = z.object({
  id: uuid,
  deviceId: uuid.nullable(),
  /** The registered name; null for a device that is not registered. */
  deviceName: z.string().nullable(),
  mac: z.string(),
  siteId: uuid,
  siteName: z.string(),
  edgeId: uuid,
  edgeName: z.string(),
  startedAt: instant,
  /** Null while the boot lasts. */
  outcome: z.enum(bootOutcomes).nullable(),
  failedPhase: z.enum(bootPhases).nullable(),
  failedCause: z.enum(bootCauses).nullable(),
  lastPhase: z.enum(bootPhases).nullable(),
  /** From the start of the boot to the end of the last known phase. */
  totalUs: count,
  bytesOut: count,
  retries: count,
  simulated: z.boolean(),
  generated: z.boolean(),
  /** Title of the entry that was taken in the boot menu; null where none was shown. */
  menuEntry: z.string().nullable(),
  /** Null where the device reported none. */
  writeCache: writeCacheView.nullable(),
  /** The last power order that the device took in this boot. */
  takenPowerOrder: z.object({ id: uuid, order: z.enum(powerOrders), takenAt: instant }).nullable(),
  /** The device's current state, according to this boot's reports. */
  deviceState,
  /** Why the device stands still, or may; null for a boot that is not its device's last one, too. */
  waitsFor: deviceWait.nullable(),
  /** When its newest report arrived. */
  reportedAt: instant,
  phases: z.array(bootPhaseView.pick({ name: true, startUs: true, durationUs: true })),
})
export type BootSummary = z.infer<typeof bootSummary>

/** A DHCP offer that was heard on the device's segment; what stands in it is untrusted text. */
const offerView = z.object({
  /** µs since the start of the boot. */
  atUs: count,
  server: z.string(),
  /** Sent by the edge that reported the boot. */
  ours: z.boolean(),
  /** `address` gives one, `proxy` only names the boot program, `both` does both. */
  kind: z.enum(['address', 'proxy', 'both']),
  yourIp: z.string().nullable(),
  nextServer: z.string().nullable(),
  relay: z.string().nullable(),
  file: z.string().nullable(),
  vendorClass: z.string().nullable(),
})
export type OfferView = z.infer<typeof offerView>

/** A packet in words. `atUs` is µs since the start of the boot. */
const namedPacketView = z.object({ atUs: count, at: instant, what: z.string() })

export const bootDetail = bootSummary.extend({
  revision: count,
  receivedAt: instant,
  /** No later boot of its device is known. */
  isLastBoot: z.boolean(),
  /** Null where the edge named none, or it is gone. */
  vdisk: z.object({ id: uuid, name: z.string(), versionNumber: count.nullable() }).nullable(),
  /**
   * Set once the boot's detail is past its retention: of phases only their times are left, and no facts, offers,
   * packets and steps.
   */
  detailGone: z.object({ keptDays: count }).nullable(),
  /** The cause in people's words; only if the outcome is `failed`. */
  cause: z.object({ sentence: z.string(), remedy: z.string(), deviceText: z.string().nullable() }).nullable(),
  /** The machine's own report: untrusted text. */
  facts: z.object({
    machineId: z.string().nullable(),
    clientArch: count.nullable(),
    vendorClass: z.string().nullable(),
    userClass: z.string().nullable(),
    ip: z.string().nullable(),
    mtuBytes: count.nullable(),
    /** The cipher of its stream; null before it was open, and from older edges. */
    cipher: z.enum(streamCiphers).nullable(),
    /** How its edge judged the key of its TPM; null before the stream was open, and from older edges. */
    deviceKey: deviceKeyLabel.nullable(),
    reconnects: count,
    /** The first boot program that the device was given. */
    program: z.object({ set: z.string(), file: z.string() }).nullable(),
  }),
  /** Null if the boot ended at the edge where it started; otherwise the edge to which its device failed over last. */
  handOver: z
    .object({ edgeId: uuid, edgeName: z.string(), at: instant, fromEdgeName: z.string().nullable(), count })
    .nullable(),
  /** The result of reading ahead until the boot was over; null without a stream, or from older edges. */
  readAhead: z
    .object({
      /** There was a boot profile for the device when its stream opened. */
      hadProfile: z.boolean(),
      askedBytes: count,
      /** The used part of `askedBytes`. */
      usedBytes: count,
      /** Reads that the device's system waited for. */
      waitedReads: count,
    })
    .nullable(),
  /** Where the time of the stream's reads went until the boot was over; null if nothing was measured. */
  readTimes: readTimesView.nullable(),
  /** In order of time; empty if the edge heard none, or is too old to report them. */
  offers: z.array(offerView),
  /** The last packet each way of a boot that did not get ready. */
  lastPackets: z.object({ fromDevice: namedPacketView.nullable(), fromEdge: namedPacketView.nullable() }).nullable(),
  /** The packets that were kept of it; null where none were. */
  capture: captureSummary.nullable(),
  /** Null until the device has sent a report. */
  guest: guestView.nullable(),
  phases: z.array(bootPhaseView),
})
export type BootDetail = z.infer<typeof bootDetail>

export const bootListInput = z.object({
  ...pageInput,
  /** `booting`: in progress. */
  outcome: z.enum([...bootOutcomes, 'booting']).optional(),
  deviceId: uuid.optional(),
  siteId: uuid.optional(),
  edgeId: uuid.optional(),
  /** `device`: a real machine; `simulated`: by bootfarm-sim; `generated`: by the demo's history generator. */
  origin: z.enum(['device', 'simulated', 'generated']).optional(),
  since: instant.optional(),
})
export const bootPage = pageOf(bootSummary)

export const bootGetInput = z.object({ bootId: uuid })

export const bootChangeInput = z
  .object({
    /** The boot of an open page, which is also sent whole. */
    bootId: uuid.nullish(),
    /** Set by the client itself when it reconnects. */
    lastEventId: z
      .string()
      .regex(/^\d{1,18}$/)
      .nullish(),
  })
  .optional()

/**
 * `synced` comes first on every connection: read your lists again, later changes follow as `boot`.
 * After a reconnect the changes since `lastEventId` follow it, each boot once with its newest state.
 * With `bootId`, that boot comes as `detail` after `synced` and after each of its changes, or as `withdrawn` if it does
 * not exist.
 */
const bootChange = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('synced') }),
  z.object({ kind: z.literal('boot'), boot: bootSummary }),
  z.object({ kind: z.literal('detail'), boot: bootDetail }),
  /** It failed over to another edge: this boot no longer exists. */
  z.object({ kind: z.literal('withdrawn'), bootId: uuid }),
  /** Which devices wait at sites is not what it was. */
  z.object({ kind: z.literal('discovered') }),
])
export type BootChange = z.infer<typeof bootChange>
