import type { streamCiphers } from '../../src/stream-ciphers.ts'
import { type guestStepGroups, powerOrders } from '../../src/uplink.ts'

/** The fields of a packet of the stream (STREAM.md). Bytes are lower-case hex, 64-bit numbers 16 hex digits. */

/** The first is that of packets without `version`. */
export const streamVersions = [2, 3] as const
export type StreamVersion = (typeof streamVersions)[number]
export const streamPortDefault = 6910
export const streamReadSizeMax = 1 << 20
export const streamReadSizePromised = 128 << 10
export const streamFragmentSizeMin = 512
/** UDP payload in bytes, sealed. */
export const streamPacketSizeMin = 548
export const streamPacketSizeMax = 8972
export const streamTagSize = 16
export const streamFragmentSizeMax = streamPacketSizeMax - 16 - streamTagSize
export const streamFragmentsMax = streamReadSizeMax / streamFragmentSizeMin
export const streamRangesMax = 64
export const streamCodecsMax = 8
/** Length of the packed answer at the front of each of its fragments. */
export const streamPackedPrefixSize = 4
export const streamSectorSize = 512
export const streamStepsMax = 24
export const streamWriteSizeMax = 128 << 10
export const streamWriteFragmentsMax = 269
export const streamDiscardSizeMax = 64 << 20
export const streamProfileSizeMax = 64 << 10

/** Indexed by their number. */
export const packetTypes = [
  'used',
  'hello',
  'cookie',
  'welcome',
  'refuse',
  'read',
  'data',
  'read_error',
  'no_session',
  'ready',
  'ready_ack',
  'report',
  'report_ack',
  'write',
  'control',
  'write_ack',
  'probe',
  'probe_ack',
  'keepalive',
  'keepalive_ack',
  'lost',
  'lost_ack',
  'fetch_times',
  'machine',
  'account',
  'account_ack',
  'network',
] as const
/** From this one on they are of version 3 alone. */
export const firstNewPacketType = packetTypes.indexOf('keepalive')
/** The objects of a READ: the disk, the disk ahead of demand, or the boot profile's document. */
/** In the flags of READ of version 3: its answer must not be packed. */
export const readPlainFlag = 8
export const readKinds = ['demand', 'ahead', 'profile'] as const
export const helloKinds = ['token', 'resumption', 'ticket'] as const
export const refuseCodes = [
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
export const streamLostReasons = ['refused', 'version_changed', 'cache_lost'] as const
export const readErrorCodes = [
  'beyond_the_end',
  'store_error',
  'version_mismatch',
  'too_large',
  'cache_lost',
  'stopped',
] as const
/** Where a device's writes are kept; of the first class the edge knows only the fill. */
export const streamWriteCaches = ['device_ram', 'edge', 'edge_persistent', 'device_ram_overflow'] as const
export const streamOperations = ['flush', 'discard'] as const
export const streamWriteCodes = [
  'done',
  'missing',
  'cache_full',
  'cache_lost',
  'beyond_the_end',
  'version_mismatch',
  'no_cache',
  'stopped',
  'not_yet',
] as const
export const readyOutcomes = ['ready', 'failed'] as const
export const streamOrders = ['none', ...powerOrders] as const

export type StreamPacketType = (typeof packetTypes)[number]
export type StreamRefusal = 'wrong_size' | 'wrong_version' | 'reserved_not_zero' | 'bad_value'

export interface InSession {
  session_id: string
  request_id: number
}
export type StreamHello = {
  type: 'hello'
  client_nonce: string
  cookie: string
  kind: (typeof helloKinds)[number]
  ciphers: (typeof streamCiphers)[number][]
  packet_size_max: number
  /** Absent: none. Bit i: the device unpacks codec i + 1. */
  codecs?: number
  boot_id: string
  client_public: string
  proof: string
  /** Of the device's TPM; absent: zeros. */
  device_key?: string
  signature?: string
  /** Only with kind `ticket`. */
  shown?: { age_us: string; ticket: string }
}
/** Where a device may fail over, first choice first, and with what. */
export interface StreamFailover {
  lifetime_s: number
  edges: string[]
  ticket: string
}
export type StreamWelcome = {
  type: 'welcome'
  session_id: string
  client_nonce: string
  edge_public: string
  cipher: (typeof streamCiphers)[number]
  version_tag: string
  disk_size: string
  fragment_size: number
  read_size_max: number
  outstanding_bytes_max: number
  resume_secret: string
  version_id: string
  profile_size: number
  write_cache: (typeof streamWriteCaches)[number]
  /** Absent: no answer is packed. */
  codec?: number
  write_cache_size: string
  write_cache_id: string
  /** Absent: there is no other edge. */
  failover?: StreamFailover
  /** Followed by zeros. */
  padding: number
}
export type StreamWrite = InSession & {
  type: 'write'
  version_tag: string
  offset: string
  length: number
  attempt: number
  fragment_size: number
  index: number
  payload: string
}
export type StreamControl = InSession & {
  type: 'control'
  version_tag: string
  operation: (typeof streamOperations)[number]
  offset: string
  length: number
  attempt: number
}
export type StreamWriteAck = InSession & {
  type: 'write_ack'
  code: (typeof streamWriteCodes)[number]
  /** Bit i % 8 of byte i / 8: fragment i has not arrived. */
  missing: string
}
export type StreamRead = InSession & {
  type: 'read'
  kind: (typeof readKinds)[number]
  /** Only true is written: the answer must not be packed. */
  is_plain?: true
  fragment_size: number
  version_tag: string
  offset: string
  length: number
  attempt: number
  /** First fragment and count; ascending and disjoint. */
  ranges: [number, number][]
}
export type StreamUsed = InSession & {
  type: 'used'
  /** Units of 32 KiB: which one of the disk, and a bit for each of its 4 KiB blocks. */
  units: [number, number][]
}
export const streamAccountKinds = ['block_trace', 'units'] as const
export type StreamAccount = InSession & {
  type: 'account'
  kind: (typeof streamAccountKinds)[number]
  part: number
  is_last: boolean
  bytes: string
}
export type StreamMachine = InSession & {
  type: 'machine'
  cpu_count: number
  card_vendor: number
  card_device: number
  memory_mib: number
  link_mbit: number
  driver: string
  model: string
}
export const streamDuplexes = ['unknown', 'half', 'full'] as const
export type StreamNetwork = InSession & {
  type: 'network'
  card: {
    duplex: (typeof streamDuplexes)[number]
    mtu: number
    link_mbit: number
    carrier_changes: number
    receive_errors: number
    crc_errors: number
    receive_drops: number
    send_errors: number
    socket_drops: number
  }
  is_settled: boolean
  is_final: boolean
  size_max: number
  size: number
  size_lost: number
  size_lost_count: number
  run_max: number
  reorder_max: number
  expected: number
  lost: number
  runs: number
  run_packets: number
  ordered: number
  reordered: number
  rtt_count: number
  rtt_min_us: number
  rtt_p50_us: number
  rtt_p95_us: number
}
export type StreamFetchTimes = InSession & {
  type: 'fetch_times'
  /** Request id and µs of each. */
  reads: [number, number][]
}
export type StreamReady = InSession & {
  type: 'ready'
  outcome: (typeof readyOutcomes)[number]
  uptime_us: string
  code: string
  sentence: string
}
export const streamReadTimeKinds = ['fetch', 'wait', 'turnaround'] as const
/** `whole` is the whole boot so far; a report has that or the phases. */
export const streamReadPhases = ['whole', 'initramfs', 'system'] as const
/** A histogram from its first non-empty bucket to its last. */
export interface StreamReadTimes {
  /** Absent: `whole`. */
  phase?: (typeof streamReadPhases)[number]
  kind: (typeof streamReadTimeKinds)[number]
  first_bucket: number
  max_us: number
  sum_us: string
  counts: number[]
}
export type StreamReport = InSession & {
  type: 'report'
  uptime_us: string
  order_id: string
  write_cache_used: string
  write_cache_size: string
  /** `start_us` is a signed number in two's complement. */
  steps: { group: (typeof guestStepGroups)[number]; start_us: string; duration_us: string; name: string }[]
  /** Absent: none. */
  read_times?: StreamReadTimes[]
}
export type StreamLost = {
  type: 'lost'
  boot_id: string
  nonce: string
  reason: (typeof streamLostReasons)[number]
  /** Only with reason `refused`. */
  refusal?: (typeof refuseCodes)[number]
  restart_in_s: number
  order_id: string
  proof: string
}
export type StreamLostAck = {
  type: 'lost_ack'
  nonce: string
  order: (typeof streamOrders)[number]
  order_id: string
  proof: string
}
export type StreamData = InSession & {
  type: 'data'
  index: number
  /** Absent: the answer is not packed. */
  packed_size?: number
  payload: string
}
/** Without `version` it is of version 2. */
export type StreamPacket = { version?: StreamVersion } & StreamBody
export type StreamBody =
  | StreamHello
  | { type: 'cookie'; client_nonce: string; cookie: string }
  | StreamWelcome
  | { type: 'refuse'; client_nonce: string; code: (typeof refuseCodes)[number] }
  | StreamRead
  | StreamUsed
  | StreamFetchTimes
  | StreamMachine
  | StreamNetwork
  | StreamAccount
  | StreamData
  | (InSession & { type: 'read_error'; code: (typeof readErrorCodes)[number] })
  | (InSession & { type: 'no_session' | 'keepalive' | 'keepalive_ack' | 'account_ack' })
  | StreamLost
  | StreamLostAck
  | StreamReady
  | (InSession & { type: 'ready_ack' })
  | StreamReport
  | (InSession & { type: 'report_ack'; order: (typeof streamOrders)[number]; order_id: string })
  | StreamWrite
  | StreamControl
  | StreamWriteAck
  | (InSession & { type: 'probe' | 'probe_ack'; size: number })
