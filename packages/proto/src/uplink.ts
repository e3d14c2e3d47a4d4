import { z } from 'zod'
import { bootCauses, bootPhases, valueSources } from './boot-phases.ts'

/** Messages between edge and API; UPLINK.md says when each is sent. Sizes in bytes, times as the unit in the name. */

const uuid = z.uuid()
const base64 = (bytes: number) =>
  z
    .base64()
    .refine((text) => Buffer.from(text, 'base64').length === bytes, `must be ${bytes} bytes in base64`)
/** JSON numbers stay exact up to 2^53 - 1. */
const count = z.number().int().nonnegative().max(Number.MAX_SAFE_INTEGER)
/** Text that a device or an agent chose: printable ASCII, never trusted. */
const untrustedText = z
  .string()
  .max(64)
  .regex(/^[\x20-\x7e]*$/)
export const macAddress = z.string().regex(/^([0-9a-f]{2}:){5}[0-9a-f]{2}$/, 'lower-case, colon-separated')

export const reportsPerBatchMax = 100
export const reportBatchSizeMax = 512 * 1024
export const bootReportSizeMax = 4096
export const stateWaitMsMax = 25_000
/** An edge refuses a state with more. */
export const powerOnsMax = 1024
export const powerOrdersMax = 1024
export const heartbeatIntervalMs = 5_000
export const edgeOnlineWithinMs = 20_000

export const enrolRequest = z.strictObject({
  version: z.literal(1),
  joinToken: z.string().min(1).max(128),
  publicKey: base64(32),
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

/** What a running device may be told to do. */
export const powerOrders = ['power_off', 'restart'] as const

/** What an edge has to do, complete; kept on its disk so that it boots devices with the API away. */
export const desiredState = z.object({
  schema: z.literal(1),
  edgeId: uuid,
  organizationId: uuid,
  siteId: uuid,
  siteName: z.string(),
  incarnation: count,
  counter: count,
  issuedUnixMs: count,
  /** Devices that are not in `devices`: `ignore` gives them no answer; `boot` gives them the first vDisk's first version. */
  unknownDevices: z.enum(['ignore', 'boot']),
  vdisks: z.array(
    z.object({
      id: uuid,
      name: z.string(),
      versions: z.array(
        z.object({
          id: uuid,
          number: count,
          sizeBytes: count,
          /** Paths below the edge's store directory, `/`-separated, without `..`. */
          diskPath: z.string(),
          kernelPath: z.string().nullable(),
          initrdPath: z.string().nullable(),
          commandLine: z.string(),
        }),
      ),
    }),
  ),
  devices: z.array(
    z.object({
      id: uuid,
      name: z.string(),
      mac: macAddress,
      versionId: uuid,
      enabled: z.boolean(),
    }),
  ),
  /** Wake-on-LAN to send; each id at least once, repeating is harmless. Gone from the snapshot after 60 s. */
  powerOns: z.array(z.object({ id: uuid, deviceId: uuid, mac: macAddress })).max(powerOnsMax),
  /** For running devices, handed over when one reports next (STREAM.md, REPORT). Gone from the snapshot after 60 s. */
  powerOrders: z
    .array(z.object({ id: uuid, deviceId: uuid, mac: macAddress, order: z.enum(powerOrders) }))
    .max(powerOrdersMax)
    .optional(),
})
export type DesiredState = z.infer<typeof desiredState>

export const stateEnvelope = z.object({ payload: z.string(), signature: base64(64), keyId: uuid })
export type StateEnvelope = z.infer<typeof stateEnvelope>

export const stateQuery = z.object({
  after: z.string().regex(/^\d{1,15}\.\d{1,15}$/),
  waitMs: z.coerce.number().int().min(0).max(stateWaitMsMax),
})

export const bootPhaseReport = z.object({
  name: z.enum(bootPhases),
  startUs: count,
  /** Absent while the phase goes on. */
  durationUs: count.optional(),
  source: z.enum(valueSources),
  bytesIn: count,
  bytesOut: count,
  packetsIn: count,
  packetsOut: count,
  retries: count,
  missingFragments: count,
  reads: count,
  /** Count of reads by size: index i counts sizes in (2^(i+8), 2^(i+9)] bytes, index 0 all up to 512. */
  readSizes: z.array(count).max(16).optional(),
  /** Silences over 250 ms, at most 8, each as begin (µs since the boot's begin) and length. */
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
])
export type BootOutcomeReport = z.infer<typeof bootOutcomeReport>

/** Where a device's own step belongs; `unit` is one of the slowest of systemd's units. */
export const guestStepGroups = ['firmware', 'kernel', 'initramfs', 'system', 'unit'] as const

/** What the device says of itself. */
export const guestReport = z.object({
  /** Where the kernel's clock began, µs since the boot's begin; concluded from when its report came. */
  kernelStartUs: z.number().int().min(Number.MIN_SAFE_INTEGER).max(Number.MAX_SAFE_INTEGER),
  /** In order of begin; firmware's steps lie before the kernel's start and so begin below 0. */
  steps: z
    .array(
      z.object({
        group: z.enum(guestStepGroups),
        name: untrustedText.min(1).max(32),
        /** µs since the kernel's start. */
        startUs: z.number().int().min(Number.MIN_SAFE_INTEGER).max(Number.MAX_SAFE_INTEGER),
        durationUs: count,
      }),
    )
    .max(24),
  /** The overlay in RAM; the edge reports it again when it has moved by 5 % of its size. `atUs` is µs since the boot's begin. */
  writeCache: z.object({ usedBytes: count, sizeBytes: count.min(1), atUs: count }).optional(),
  /** The last power order that the device has taken. */
  powerOrderId: uuid.optional(),
})
export type GuestReport = z.infer<typeof guestReport>

export const bootReport = z.object({
  id: uuid,
  revision: count,
  mac: macAddress,
  /** Option 97 as the firmware says it: any 16 bytes, many boards follow no version of RFC 9562. */
  machineId: z.guid().lowercase().optional(),
  deviceId: uuid.optional(),
  vdiskId: uuid.optional(),
  versionId: uuid.optional(),
  /** The device said it is `bootfarm-sim`. */
  simulated: z.boolean(),
  /** Made by the demo's history generator; never happened. */
  generated: z.boolean(),
  startedUnixMs: count,
  clientArch: count.max(65535).optional(),
  vendorClass: untrustedText.optional(),
  userClass: untrustedText.optional(),
  ip: z.ipv4().optional(),
  /** IP packet size that the stream's largest fragment had, in bytes. */
  mtu: count.max(65535).optional(),
  reconnects: count,
  phases: z.array(bootPhaseReport).max(bootPhases.length),
  /** Absent until the device has said anything; it may change after the boot is over. */
  guest: guestReport.optional(),
  /** Absent while the boot goes on. */
  outcome: bootOutcomeReport.optional(),
})
export type BootReport = z.infer<typeof bootReport>

export const report = z.discriminatedUnion('type', [
  z.object({ seq: count.min(1), type: z.literal('boot'), boot: bootReport }),
  z.object({ seq: count.min(1), type: z.literal('gap'), untilSeq: count, reason: untrustedText }),
])
export type Report = z.infer<typeof report>

/** A report that this version cannot read counts as lost: refusing its batch would hold up all that come after it for ever. */
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

export const heartbeat = z.strictObject({
  agentVersion: untrustedText,
  arch: z.enum(['x86_64', 'aarch64']),
  uptimeMs: count,
  clockUnixMs: count,
  devicesBooting: count,
  reportBacklog: count,
  state: statePair,
  /** Packets and requests that were ignored, by reason. */
  ignored: z
    .record(untrustedText, count)
    .refine((counters) => Object.keys(counters).length <= 64, 'at most 64 reasons'),
})
export type Heartbeat = z.infer<typeof heartbeat>

export const heartbeatAnswer = z.object({ state: statePair })
