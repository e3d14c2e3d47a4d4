import { z } from 'zod'
import { bootCauses, bootPhases, valueSources } from './boot-phases.ts'
import { streamCiphers } from './stream-ciphers.ts'
import { bootProgramSetName } from './uplink-state.ts'
import { writeCacheClasses, writeCacheStates } from './uplink-store.ts'
import { base64, count, macAddress, untrustedText, uuid } from './uplink-values.ts'

/** A boot as its edge reports it; see UPLINK.md. */

export const bootPhaseReport = z.object({
  name: z.enum(bootPhases),
  startUs: count,
  /** Absent while the phase lasts. */
  durationUs: count.optional(),
  source: z.enum(valueSources),
  bytesIn: count,
  bytesOut: count,
  packetsIn: count,
  packetsOut: count,
  retries: count,
  missingFragments: count,
  reads: count,
  /** Counts reads by size: index i counts sizes in (2^(i+8), 2^(i+9)] bytes, index 0 everything up to 512. */
  readSizes: z.array(count).max(16).optional(),
  /** Silences over 250 ms, at most 8, each with its start (µs since the start of the boot) and its length. */
  gaps: z
    .array(z.object({ atUs: count, durationUs: count }))
    .max(8)
    .optional(),
})
export type BootPhaseReport = z.infer<typeof bootPhaseReport>

export const bootOutcomeReport = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('ready') }),
  z.object({
    kind: z.literal('failed'),
    phase: z.enum(bootPhases),
    cause: z.enum(bootCauses),
    text: untrustedText.optional(),
  }),
  z.object({ kind: z.literal('silent'), phase: z.enum(bootPhases) }),
  z.object({ kind: z.literal('superseded') }),
  /** The boot menu sent the device to its own disk. */
  z.object({ kind: z.literal('local_disk') }),
])
export type BootOutcomeReport = z.infer<typeof bootOutcomeReport>

/** What a loader does one after the other: its own DHCP exchange, and its downloads. */
export const loaderStepNames = ['dhcp', 'script', 'kernel', 'initrd', 'other'] as const

export const transferProtocols = ['tftp', 'http'] as const
export const transferOutcomes = ['done', 'timeout', 'refused', 'aborted', 'not_found'] as const
const transfersMax = 24

/** A file that the device loaded before its stream: all its requests by one protocol. */
export const transferReport = z.object({
  name: untrustedText,
  protocol: z.enum(transferProtocols),
  /** µs since the start of the boot: the first request. */
  startUs: count,
  /** Until the last packet of the last request. */
  durationUs: count,
  /** Of the file; blocks of TFTP that were sent twice count once. */
  bytes: count,
  /** Blocks of TFTP or segments of TCP that were sent again; absent: none. */
  retransmitted: count.optional(),
  /** Absent: one. */
  requests: count.optional(),
  /** Of the last request by TFTP: bytes of a block. Absent from older edges. */
  blockSize: count.min(1).max(65535).optional(),
  /** Of the last request; absent: it lasts, or its end was never observed. */
  outcome: z.enum(transferOutcomes).optional(),
})
export type TransferReport = z.infer<typeof transferReport>

const bucketsMax = 64
const buckets = z.array(count).min(1).max(bucketsMax).optional()

/** What the edge sent over time. Bucket i begins i widths after the start of the boot; an absent list is all zeros. */
export const seriesReport = z
  .object({
    widthUs: count.min(1),
    bytes: buckets,
    retransmissions: buckets,
    /** The most READs at a time that had arrived and were not answered yet. */
    reads: buckets,
  })
  .refine(
    ({ bytes, retransmissions, reads }) =>
      new Set([bytes, retransmissions, reads].flatMap((list) => (list ? [list.length] : []))).size <= 1,
    { message: 'lists of different lengths' },
  )
export type SeriesReport = z.infer<typeof seriesReport>

/** The group of a device's own step; `unit` is one of systemd's slowest units. */
export const guestStepGroups = ['firmware', 'kernel', 'initramfs', 'system', 'unit'] as const

/** The device's report about itself. */
export const guestReport = z.object({
  /** When the kernel's clock started, in µs since the start of the boot; derived from when its report arrived. */
  kernelStartUs: z.number().int().min(Number.MIN_SAFE_INTEGER).max(Number.MAX_SAFE_INTEGER),
  /** In order of start; firmware steps precede the kernel and so start below 0. */
  steps: z
    .array(
      z.object({
        group: z.enum(guestStepGroups),
        name: untrustedText.min(1).max(32),
        /** µs since the kernel started. */
        startUs: z.number().int().min(Number.MIN_SAFE_INTEGER).max(Number.MAX_SAFE_INTEGER),
        durationUs: count,
      }),
    )
    .max(24),
  /** The edge reports it again when it has changed by 5 % of its size. `atUs` is in µs since the start of the boot. */
  writeCache: z
    .object({
      usedBytes: count,
      sizeBytes: count.min(1),
      atUs: count,
      /** Absent: the overlay in the device's RAM. */
      class: z.enum(writeCacheClasses).optional(),
      /** Absent: it accepts writes. `stopped` and `lost`: the device's disk is halted. */
      state: z.enum(writeCacheStates).optional(),
      /** At the rate of the last minutes; absent: it does not fill, or nobody knows. */
      fullInSeconds: count.optional(),
    })
    .optional(),
  /** The last power order that the device took. */
  powerOrderId: uuid.optional(),
})
export type GuestReport = z.infer<typeof guestReport>

/** The result of reading ahead; see docs/reference/boot-profile.md. Used bytes are part of the requested ones. */
export const readAheadReport = z
  .object({
    /** There was a profile for the device when its stream opened. */
    hadProfile: z.boolean(),
    askedBytes: count,
    usedBytes: count,
    /** READs that the device's system waited for. */
    waitedReads: count,
  })
  .refine(({ askedBytes, usedBytes }) => usedBytes <= askedBytes, {
    path: ['usedBytes'],
    message: 'more than was asked for',
  })
export type ReadAheadReport = z.infer<typeof readAheadReport>

const durationBuckets = 24

/**
 * Durations by power of two: bucket 0 holds those below 1 µs, bucket i those from 2^(i-1) to less than 2^i µs, bucket
 * 23 also all longer ones.
 */
const durationHistogram = z
  .object({
    /** The bucket of `counts[0]`; omitted buckets are empty. */
    firstBucket: count.max(durationBuckets - 1),
    counts: z.array(count.max(0xffff_ffff)).min(1).max(durationBuckets),
    maxUs: count.max(0xffff_ffff),
    sumUs: count,
  })
  .refine(({ firstBucket, counts }) => firstBucket + counts.length <= durationBuckets, {
    path: ['counts'],
    message: 'more buckets than there are',
  })
export type DurationHistogram = z.infer<typeof durationHistogram>

/** Each one is absent where nothing was measured. */
const readTimesOfPart = {
  /** Bytes that READs requested from the edge; absent from older edges. */
  bytes: count.optional(),
  /**
   * Measured by the edge for each READ: until its bytes were available, from memory and from a disk, and until all were
   * handed to the kernel.
   */
  warm: durationHistogram.optional(),
  cold: durationHistogram.optional(),
  send: durationHistogram.optional(),
  /**
   * Measured by the edge for each READ whose fragments it sent again: from the last packet of its answer to that of its
   * last retransmission. Absent from older edges.
   */
  late: durationHistogram.optional(),
  /**
   * The part of the network: measured by the device for each READ, without what the edge measured for the same one.
   * Absent from older edges, and of devices that do not report each READ.
   */
  wire: durationHistogram.optional(),
  /**
   * Measured by the device: each READ until its last byte, each read of its system, and from an answer to the next
   * read.
   */
  fetch: durationHistogram.optional(),
  wait: durationHistogram.optional(),
  turnaround: durationHistogram.optional(),
}

/** Until the initramfs handed over to the system, and from there until the boot was over. */
export const readPhases = ['initramfs', 'system'] as const
export type ReadPhase = (typeof readPhases)[number]

/** Where the time of the stream's reads went until the boot was over (STREAM.md). */
export const readTimesReport = z.object({
  ...readTimesOfPart,
  /**
   * The same by phase; absent where the device does not tell phases apart, and where the report has no space for it.
   */
  phases: z
    .array(z.object({ name: z.enum(readPhases), ...readTimesOfPart }))
    .max(readPhases.length)
    .optional(),
})
export type ReadTimesReport = z.infer<typeof readTimesReport>

/** One DHCP offer that was heard on the device's segment, from any server. */
export const dhcpOffer = z.object({
  atUs: count,
  /** Option 54, or the packet's source. */
  server: z.ipv4(),
  /** This edge's own offer. */
  ours: z.boolean(),
  /** `address` gives an address, `proxy` only names the boot program, `both` does both. */
  kind: z.enum(['address', 'proxy', 'both']),
  yourIp: z.ipv4().optional(),
  nextServer: z.ipv4().optional(),
  relay: z.ipv4().optional(),
  file: untrustedText.optional(),
  vendorClass: untrustedText.optional(),
})
export type DhcpOffer = z.infer<typeof dhcpOffer>

/**
 * The boot failed over to this edge from another one (STREAM.md, "Fail-over"); its revisions are above all of that
 * edge's.
 */
export const handOverReport = z.object({
  /** How often the boot has failed over. */
  number: count.min(1).max(65535),
  fromEdgeId: uuid,
  /** µs since the start of the boot. */
  atUs: count,
})
export type HandOverReport = z.infer<typeof handOverReport>

/** What a device proves about itself, in words for the dashboard; see UPLINK.md, "Device keys". */
export const deviceKeyLabels = [
  'key_known',
  'key_waits',
  'key_changed',
  'key_missing',
  'no_key',
  'signature_invalid',
] as const

export const deviceKeyReport = z.object({
  label: z.enum(deviceKeyLabels),
  /** SHA-256 of the key whose possession the device has proved. */
  key: base64(32).optional(),
  /** `keyRevision` of the state by which the edge judged; absent: 0. */
  revision: count.optional(),
})
export type DeviceKeyReport = z.infer<typeof deviceKeyReport>

/** STREAM.md, LOST. */
export const lostReasons = ['refused', 'version_changed', 'cache_lost'] as const
/** Codes of REFUSE. */
export const refusals = [
  'token_refused',
  'version_missing',
  'busy',
  'no_cipher',
  'cache_lost',
  'cache_version',
  'cache_failed',
  'cache_elsewhere',
  'identity_refused',
] as const

/** The device reports that its session is lost for good: its system stands still, and an order still reaches it. */
export const lostReport = z.object({
  reason: z.enum(lostReasons),
  /** With reason `refused` only. */
  refusal: z.enum(refusals).optional(),
  /** When the edge first heard of it, in µs since the start of the boot. */
  atUs: count,
  /** When the device restarts by itself, in µs since the start of the boot; absent: it waits for an order. */
  restartAtUs: count.optional(),
  /** The last power order that it took since then. */
  powerOrderId: uuid.optional(),
})
export type LostReport = z.infer<typeof lostReport>

const counter = count.max(0xffff_ffff)
/** The counters are at most the packets. */
const isWithin = ({ packets, lost }: { packets: number; lost: number }) => lost <= packets
const tooMany = { path: ['lost'], message: 'more than there were' }

/** What device and edge measured of the network between them (STREAM.md, "What the network does"). */
export const networkReport = z.object({
  duplex: z.enum(['half', 'full']).optional(),
  /** Of the card, in bytes of an IP packet. */
  mtu: count.max(65535).optional(),
  linkMbit: counter.optional(),
  /** Since the device's kernel started; absent: 0, or unknown. */
  carrierChanges: counter.optional(),
  receiveErrors: counter.optional(),
  crcErrors: counter.optional(),
  receiveDrops: counter.optional(),
  sendErrors: counter.optional(),
  socketDrops: counter.optional(),
  /** UDP payload in bytes: what both cards take, and what passes. */
  sizeMax: count.max(65535),
  size: count.max(65535),
  /** A larger size of which that many packets were sent and none arrived. */
  lostSize: count.max(65535).optional(),
  lostSizeCount: count.max(65535).optional(),
  /** Absent in clear text. */
  toDevice: z
    .object({ packets: count, lost: count, runs: counter, runPackets: counter, longestRun: count.max(65535) })
    .refine(isWithin, tooMany)
    .optional(),
  fromDevice: z.object({ packets: count, lost: count }).refine(isWithin, tooMany).optional(),
  order: z
    .object({ packets: counter, late: counter, distance: count.max(65535) })
    .refine(({ packets, late }) => late <= packets, { path: ['late'], message: 'more than there were' })
    .optional(),
  rtt: z.object({ count: counter.min(1), minUs: counter, p50Us: counter, p95Us: counter }).optional(),
})
export type NetworkReport = z.infer<typeof networkReport>

/** A packet in words, e.g. `TFTP ACK of block 145`. */
const namedPacket = z.object({ atUs: count, what: untrustedText.min(1) })

export const bootReport = z.object({
  id: uuid,
  revision: count,
  mac: macAddress,
  /** Option 97 as the firmware sends it: any 16 bytes, since many boards follow no version of RFC 9562. */
  machineId: z.guid().lowercase().optional(),
  deviceId: uuid.optional(),
  vdiskId: uuid.optional(),
  versionId: uuid.optional(),
  /** The trial of an experiment whose settings it has; absent: none, or an older edge. */
  trial: uuid.optional(),
  /** The device identified itself as `bootfarm-sim`. */
  simulated: z.boolean(),
  /** Made by the demo's history generator; it never happened. */
  generated: z.boolean(),
  startedUnixMs: count,
  clientArch: count.max(65535).optional(),
  vendorClass: untrustedText.optional(),
  userClass: untrustedText.optional(),
  ip: z.ipv4().optional(),
  /** The IP packet size of the stream's largest fragment, in bytes. */
  mtu: count.max(65535).optional(),
  /** How the stream was protected (STREAM.md). */
  cipher: z.enum(streamCiphers).optional(),
  /** Absent before the device's HELLO, and from older edges. */
  deviceKey: deviceKeyReport.optional(),
  /** What the device says that it is (STREAM.md, MACHINE). Absent from older devices and edges. */
  machine: z
    .object({
      processors: count.min(1).max(65535),
      memoryMib: count.min(1).max(0xffff_ffff),
      /** PCI ids of its network card, as `lspci -n` writes them. */
      card: z
        .string()
        .regex(/^[0-9a-f]{4}:[0-9a-f]{4}$/)
        .optional(),
      driver: untrustedText.max(16).optional(),
      linkMbit: count.max(0xffff_ffff).optional(),
      /** Vendor and model, as its firmware tells them. */
      model: untrustedText.optional(),
    })
    .optional(),
  /** Absent from older devices and edges. */
  network: networkReport.optional(),
  reconnects: count,
  /**
   * When a device that writes at this edge last came back to it, in µs since the start of the boot; absent: never, or
   * from older edges.
   */
  resumedUs: count.optional(),
  /** Absent: the boot began at the edge that reports it. */
  handOver: handOverReport.optional(),
  /**
   * The longest pause in which the loader waited for an IPv6 router, between its last DHCP packet or its boot program
   * and its next download; absent: it did not, or the edge is older than this field.
   */
  routerWait: z
    .object({
      atUs: count,
      durationUs: count,
      /** Router solicitations of the device that the edge heard in it; 0: it has inferred the wait from its length. */
      solicitations: count,
    })
    .optional(),
  /**
   * Each from its first packet to its last byte, in µs since the start of the boot; absent: no loader was heard, there
   * is no space, or the edge is older than this field.
   */
  loaderSteps: z
    .array(
      z.object({
        name: z.enum(loaderStepNames),
        startUs: count,
        /** Absent while it lasts, and if its end was never observed. */
        durationUs: count.optional(),
      }),
    )
    .max(loaderStepNames.length)
    .optional(),
  /**
   * When the loader's script asked for the file that it requests right before it starts the kernel, in µs since the
   * start of the boot; absent: it has not, there is no space, or the edge is older than this field.
   */
  bootCommandUs: count.optional(),
  /** In order of their first request; absent: none, or the edge is older than this field. */
  transfers: z.array(transferReport).max(transfersMax).optional(),
  /** Requests and files that the edge has not listed in `transfers`; absent: none. */
  transfersLeftOut: count.optional(),
  /** Absent where nothing was sent, and from older edges. */
  series: seriesReport.optional(),
  /** Set and file name of the first boot program that the device got. */
  program: z.object({ set: bootProgramSetName, file: untrustedText }).optional(),
  /** Title of the entry that was chosen in the boot menu. */
  menuEntry: untrustedText.optional(),
  /**
   * The result of reading ahead until the boot was over; absent: it had no stream, or the edge is older than this
   * field.
   */
  readAhead: readAheadReport.optional(),
  /** Absent where nothing was read, and from older edges. */
  readTimes: readTimesReport.optional(),
  /** The first eight, in order of time. */
  offers: z.array(dhcpOffer).max(8).optional(),
  /** The last packet in each direction; absent once the device is ready. */
  lastPackets: z.object({ fromDevice: namedPacket.optional(), fromEdge: namedPacket.optional() }).optional(),
  phases: z.array(bootPhaseReport).max(bootPhases.length),
  /** Absent until the device has reported; it may change after the boot is over. */
  guest: guestReport.optional(),
  /** Absent while the device has a session, and from older edges; it may come after the boot is over. */
  lost: lostReport.optional(),
  /**
   * Set for a device that became ready and reported, or whose session is lost for good: it has been silent since then,
   * in µs since the start of the boot. Absent while it is heard.
   */
  silentSinceUs: count.optional(),
  /** Absent while the boot runs. */
  outcome: bootOutcomeReport.optional(),
})
export type BootReport = z.infer<typeof bootReport>
