import { z } from 'zod'
import { bootReport } from './uplink-boot.ts'
import { signingKeyStatement, signingKeyStatementsMax } from './uplink-keys.ts'
import { scheduleRunReport } from './uplink-schedule.ts'
import { bootProgramSetName, releaseVersion, siteEdgesMax } from './uplink-state.ts'
import { saidJobKindsMax } from './uplink-store.ts'
import { base64, count, macAddress, untrustedText, uuid } from './uplink-values.ts'

export * from './stream-ciphers.ts'
export * from './uplink-boot.ts'
export * from './uplink-keys.ts'
export * from './uplink-reads.ts'
export * from './uplink-schedule.ts'
export * from './uplink-state.ts'
export * from './uplink-store.ts'
export { macAddress }

/**
 * Messages between edge and API; UPLINK.md describes when each is sent. Sizes are in bytes, times in the unit of the
 * name.
 */

export const reportsPerBatchMax = 100
export const reportBatchSizeMax = 512 * 1024
/**
 * A batch sent as gzip grows to at most this size when it is unzipped; edges send one that would exceed it
 * uncompressed.
 */
export const reportBatchRatioMax = 100
export const bootReportSizeMax = 4096
export const stateWaitMsMax = 25_000
/** The size limit of a boot's kept packets as one pcap file, in bytes. */
export const captureSizeMax = 256 * 1024
/** How long an edge that has nothing new to say may wait with its next heartbeat. */
export const heartbeatIntervalMs = 30_000
/**
 * How long a poll that carries a heartbeat may wait: it is the edge's only request while nothing happens. Some load
 * balancers end a request after 30 s without an answer, unless they are told otherwise.
 */
export const pollWaitMs = 28_000
/** Two heartbeats may be lost. */
export const edgeOnlineWithinMs = 75_000
/** An edge hears the others of its site each second. */
export const peerHeardWithinMs = 20_000
/**
 * The protocol version of edge and API, as the header `bootfarm-uplink` gives it; absent: 1. VERSIONS.md lists the
 * additions of each.
 */
export const uplinkVersion = 5
/** An API of version N accepts edges of N-3..N, and of the next one, which requests nothing that it does not know. */
export const uplinkVersionsAccepted = { oldest: Math.max(1, uplinkVersion - 3), newest: uplinkVersion + 1 }

export const enrolRequest = z.object({
  version: z.literal(1),
  joinToken: z.string().min(1).max(128),
  publicKey: base64(32),
  /** X25519, for what only this edge may read; absent: from older edges. */
  sealKey: base64(32).optional(),
  agentVersion: untrustedText,
  arch: z.enum(['x86_64', 'aarch64']),
  hostname: untrustedText,
})
export type EnrolRequest = z.infer<typeof enrolRequest>

export const enrolResponse = z.object({
  edgeId: uuid,
  organizationId: uuid,
  siteId: uuid,
  siteName: z.string(),
  signingKey: z.object({ id: uuid, publicKey: base64(32) }),
})
export type EnrolResponse = z.infer<typeof enrolResponse>

const statePair = z.object({ incarnation: count, counter: count })
/** SHA-256 in hex. */
const stateDigestText = z.string().regex(/^[0-9a-f]{64}$/)

export const stateEnvelope = z.object({
  payload: z.string(),
  signature: base64(64),
  keyId: uuid,
  /** All of the organization's, oldest first; absent where its first key still signs. */
  keys: z.array(signingKeyStatement).max(signingKeyStatementsMax).optional(),
})
export type StateEnvelope = z.infer<typeof stateEnvelope>

/** How a payload follows from the one of that digest. */
export const stateDelta = z.object({
  base: stateDigestText,
  /** In ascending order; positions and sizes are in bytes of the base, which has none of them twice. */
  edits: z.array(z.object({ at: count, remove: count, insert: z.string() })),
})
export type StateDelta = z.infer<typeof stateDelta>

/** The signature is that of the payload which the edge makes by it. */
export const stateDeltaEnvelope = stateEnvelope.omit({ payload: true }).extend({ delta: stateDelta })
export type StateDeltaEnvelope = z.infer<typeof stateDeltaEnvelope>

export const stateQuery = z.object({
  after: z.string().regex(/^\d{1,15}\.\d{1,15}$/),
  waitMs: z.coerce.number().int().min(0).max(stateWaitMsMax),
  /** The digest of the payload that the edge has: the answer may be a change of it. */
  base: stateDigestText.optional(),
})
/** Of a poll that carries a heartbeat. */
export const pollQuery = stateQuery.extend({ waitMs: z.coerce.number().int().min(0).max(pollWaitMs) })

/**
 * A device that is not in the desired state and asked to boot. Reported when first seen, then at most once a minute.
 */
export const discoveredDevice = z.object({
  mac: macAddress,
  machineId: z.guid().lowercase().optional(),
  vendorClass: untrustedText.optional(),
  userClass: untrustedText.optional(),
  hostName: untrustedText.optional(),
  clientArch: count.max(65535).optional(),
  ip: z.ipv4().optional(),
  /** Address of the relay agent (giaddr), if there is one. */
  relay: z.ipv4().optional(),
  asked: z.enum(['dhcp', 'tftp', 'http']),
  firstSeenUnixMs: count,
  lastSeenUnixMs: count,
  requests: count,
})
export type DiscoveredDevice = z.infer<typeof discoveredDevice>

export const report = z.discriminatedUnion('type', [
  z.object({ seq: count.min(1), type: z.literal('boot'), boot: bootReport }),
  z.object({ seq: count.min(1), type: z.literal('discovered'), device: discoveredDevice }),
  /** The boot failed over to another edge of the site: what this edge reported about it is not a boot. */
  z.object({ seq: count.min(1), type: z.literal('withdrawn'), bootId: uuid, toEdgeId: uuid.optional() }),
  /**
   * A device asked this edge to continue its boot, and was sent back to `edgeId`, which has its writes. `atUs` is since
   * the start of the boot.
   */
  z.object({
    seq: count.min(1),
    type: z.literal('waiting'),
    bootId: uuid,
    mac: macAddress,
    edgeId: uuid,
    startedUnixMs: count,
    atUs: count,
  }),
  /** The progress of a schedule's run at this edge. */
  z.object({ seq: count.min(1), type: z.literal('schedule_run'), run: scheduleRunReport }),
  z.object({
    seq: count.min(1),
    type: z.literal('gap'),
    untilSeq: count,
    reason: untrustedText,
    /** When the first and the last of them were lost, by the edge's clock. */
    fromUnixMs: count.optional(),
    untilUnixMs: count.optional(),
  }),
])
export type Report = z.infer<typeof report>

/** A report that this version cannot read counts as lost: refusing its batch would block all later reports forever. */
export interface UnreadableReport {
  seq: number
  type: 'unreadable'
  reason: string
}

const receivedReport = z.looseObject({ seq: count.min(1) }).transform((value): Report | UnreadableReport => {
  const result = report.safeParse(value)
  if (result.success) return result.data
  const [issue] = result.error.issues
  return { seq: value.seq, type: 'unreadable', reason: `${issue?.path.join('.')}: ${issue?.message}` }
})
export type ReceivedReport = z.infer<typeof receivedReport>

export const reportBatch = z.strictObject({
  bootEpoch: count.min(1),
  fromSeq: count.min(1),
  reports: z.array(receivedReport).min(1).max(reportsPerBatchMax),
})
export type ReportBatch = z.infer<typeof reportBatch>

export const reportAnswer = z.object({ bootEpoch: count, ackedSeq: count })

/** A boot program as `bootfarm-edge boot-files` knows it. */
export const bootProgram = z.object({
  set: bootProgramSetName,
  file: untrustedText.min(1),
  /** Which firmware can start it; `any`: not a program, or an unknown one. */
  arch: z.enum(['bios', 'x64_uefi', 'arm64_uefi', 'any']),
  /** Name of the program, e.g. `iPXE`, `shim`, `GRUB`. */
  kind: untrustedText,
  version: untrustedText.optional(),
  sizeBytes: count,
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  /** Subjects of its Authenticode signatures; empty: unsigned. */
  signedBy: z.array(untrustedText).max(4),
})
export type BootProgram = z.infer<typeof bootProgram>

export const edgeInterface = z.object({
  name: untrustedText.max(16),
  ip: z.ipv4(),
  prefixLength: count.max(32),
  mtu: count.max(65535),
})

/** Kinds of storage that a store may lie on: disks, a network's file system, or memory. */
export const storageKinds = ['nvme', 'ssd', 'hdd', 'network', 'memory'] as const

/** The machine that the edge runs on; vDisks lie in its store. */
export const edgeMachine = z.object({
  /** Processes that run or wait to run, over the last minute (getloadavg(3)). */
  loadAverage: z.number().nonnegative().max(1_000_000),
  processors: count.min(1).max(65_535),
  memoryTotalBytes: count,
  memoryAvailableBytes: count,
  /** The part of memory that caches files: reads of vDisks are answered from it. */
  fileCacheBytes: count,
  storeTotalBytes: count,
  storeFreeBytes: count,
  /** What the store lies on, with the disk's model or the file system's name. Absent where the system does not tell. */
  storeMedium: z.object({ kind: z.enum(storageKinds), name: untrustedText }).optional(),
})
export type EdgeMachine = z.infer<typeof edgeMachine>

/** How much the edge works: levels, and counters since its start, which begin at 0 again at 2^53. */
export const edgeLoad = z.object({
  /** Devices that stream their disk. */
  streams: count,
  /** Sent over each protocol. */
  tftpBytes: count,
  httpBytes: count,
  streamBytes: count,
  reads: count,
  /** Of these, reads that waited for a disk or for verification, and how long they waited together. */
  coldReads: count,
  coldReadUs: count,
  /**
   * Time of all processors of the machine together, and of this the time in which they worked, but not at what yields
   * to all other work.
   */
  processorMs: count.optional(),
  processorBusyMs: count.optional(),
  /** Speed of the interface that devices reach; absent: it has none, as virtual ones. */
  linkMbps: count.optional(),
})
export type EdgeLoad = z.infer<typeof edgeLoad>

/** Further fields of a newer edge are ignored. */
/** The known values of `stateRefused` in a heartbeat; an edge may have further reasons. */
export const stateRefusals = [
  'too_large',
  'malformed',
  'signature_invalid',
  'schema_too_new',
  'other_edge',
  'not_higher',
  'not_opened',
  'out_of_memory',
] as const

/** The known values of `problems` in a heartbeat. */
export const edgeProblems = [
  'data_unwritable',
  'data_low_space',
  'data_replaced',
  'epoch_not_kept',
  'boots_not_kept',
  'leases_not_kept',
  'reports_not_kept',
  'stream_key_not_kept',
  'seal_key_not_kept',
  'other_files_not_kept',
  'store_unwritable',
  'store_low_space',
  'store_replaced',
  'store_damaged',
  'store_failing',
  'disk_stalled',
] as const

/** The known values of `update.state` in a heartbeat, and of `update.cause`. */
export const updateStates = ['fetching', 'waiting', 'probation', 'healthy', 'failed'] as const
export const updateCauses = [
  'no_root',
  'no_time',
  'no_answer',
  'metadata_refused',
  'metadata_expired',
  'not_listed',
  'target_refused',
  'too_slow',
  'no_space',
  'unfit',
  'ended',
  'cannot_start',
  'no_control_plane',
] as const

export const heartbeat = z.object({
  agentVersion: untrustedText,
  arch: z.enum(['x86_64', 'aarch64']),
  uptimeMs: count,
  clockUnixMs: count,
  devicesBooting: count,
  reportBacklog: count,
  /** As at enrolment: edges that enrolled before there was one create it. */
  sealKey: base64(32).optional(),
  state: statePair,
  /** Why the edge has not taken the state that the API has for it; it keeps using `state`. */
  stateRefused: z
    .string()
    .regex(/^[a-z_]{1,32}$/)
    .optional(),
  /** Where devices and other edges of the site reach it. */
  address: z.ipv4().optional(),
  peerPort: count.max(65535).optional(),
  streamPort: count.max(65535).optional(),
  machine: edgeMachine.optional(),
  /** Absent: from older edges. */
  load: edgeLoad.optional(),
  interfaces: z.array(edgeInterface).max(16).optional(),
  bootPrograms: z.array(bootProgram).max(32).optional(),
  /** Which kinds of store jobs this edge does; absent: `unsaidJobKinds`. */
  storeJobKinds: z
    .array(z.string().regex(/^[a-z][a-z_]{0,31}$/))
    .max(saidJobKindsMax)
    .optional(),
  /** Ranges of versions that it could not read for a device: there is a damaged block, or the disk fails. */
  storeErrors: z
    .array(z.object({ versionId: uuid, offset: count, length: count, count, sinceUnixMs: count }))
    .max(16)
    .optional(),
  /** Damaged blocks of versions since it started: repaired from other edges of the site, and not. */
  repairs: z
    .array(z.object({ versionId: uuid, repaired: count, failed: count, lastUnixMs: count }))
    .max(16)
    .optional(),
  /** Copies that it keeps of the write caches of other edges of its site. */
  cacheCopies: z
    .array(z.object({ edgeId: uuid, count, oldestUnixMs: count }))
    .max(16)
    .optional(),
  /** What is wrong with its disks, by the names of `edgeProblems`; a newer edge may have further ones. */
  problems: z
    .array(z.string().regex(/^[a-z][a-z_]{0,31}$/))
    .max(32)
    .optional(),
  /** What became of `release` of its state; absent: none is ordered. A newer edge may have further words. */
  update: z
    .object({
      version: releaseVersion,
      attempt: count,
      state: z.string().regex(/^[a-z_]{1,32}$/),
      cause: z
        .string()
        .regex(/^[a-z_]{1,32}$/)
        .optional(),
    })
    .optional(),
  /** Other edges of the site that it hears directly. */
  peers: z
    .array(z.object({ edgeId: uuid, heardMsAgo: count, booting: count }))
    .max(siteEdgesMax)
    .optional(),
  /** Packets and requests that were ignored, by reason. */
  ignored: z
    .record(untrustedText, count)
    .refine((counters) => Object.keys(counters).length <= 64, 'at most 64 reasons'),
})
export type Heartbeat = z.infer<typeof heartbeat>

/** What the organization's key signs together with its time: an old answer has another nonce. */
export const timeRequest = z.object({ nonce: base64(32) })

export const heartbeatAnswer = z.object({
  state: statePair,
  /** `heartbeatIntervalMs`; an edge takes 5 s where it is absent. */
  nextMs: count.optional(),
  /** Polls may carry heartbeats, and wait so long; absent: neither. */
  pollWaitMs: count.optional(),
})
