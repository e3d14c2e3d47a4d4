import { streamCiphers } from '../../src/stream-ciphers.ts'
import { guestStepGroups } from '../../src/uplink.ts'
import { parseNetwork } from './network.ts'
import {
  firstNewPacketType,
  helloKinds,
  type InSession,
  packetTypes,
  readErrorCodes,
  readKinds,
  readPlainFlag,
  readyOutcomes,
  refuseCodes,
  type StreamAccount,
  type StreamBody,
  type StreamData,
  type StreamHello,
  type StreamLost,
  type StreamMachine,
  type StreamPacket,
  type StreamRead,
  type StreamReady,
  type StreamReport,
  type StreamVersion,
  type StreamWelcome,
  streamAccountKinds,
  streamCodecsMax,
  streamFragmentSizeMax,
  streamFragmentSizeMin,
  streamFragmentsMax,
  streamLostReasons,
  streamOrders,
  streamPackedPrefixSize,
  streamPacketSizeMax,
  streamPacketSizeMin,
  streamProfileSizeMax,
  streamRangesMax,
  streamReadSizeMax,
  streamReadSizePromised,
  streamSectorSize,
  streamStepsMax,
  streamTagSize,
  streamVersions,
  streamWriteCaches,
} from './packet.ts'
import { parseUsed } from './profile.ts'
import { check, headerSize, isPrintable, isZero, Reader, refuse } from './reader.ts'
import { parseFailover, sealedTicketSize } from './ticket.ts'
import { parseFetchTimes, parseReadTimes } from './times.ts'
import { parseControl, parseWrite, parseWriteAck } from './writes.ts'

/**
 * Packets of the stream, versions 2 and 3 (STREAM.md), in clear text. Bytes are lower-case hex, 64-bit numbers 16 hex
 * digits (they do not fit a JavaScript number); `emitStreamPacket` (emit.ts) writes back byte for byte what
 * `parseStreamPacket` accepts. Only tests use it: the API never speaks the stream.
 */

const welcomeSize = 168

/** Parses the packet in `bytes`; throws StreamPacketError. */
export function parseStreamPacket(bytes: Uint8Array): StreamPacket {
  check(bytes.length >= headerSize, 'wrong_size')
  const reader = new Reader(bytes)
  const first = reader.bytes.readUInt8(0)
  const version = streamVersions.find((known) => known === first >> 4) ?? refuse('wrong_version')
  const number = reader.bytes.readUInt8(1)
  const type = packetTypes[number] ?? refuse('bad_value')
  check(version === 3 || number < firstNewPacketType, 'bad_value')
  const index = reader.bytes.readUInt16BE(2)
  const request_id = reader.bytes.readUInt32BE(4)
  const session_id = reader.bytes.toString('hex', 8, headerSize)
  const flags = first & 15
  const flagsMax = type === 'data' && version === 3 ? 1 : 0
  check(flags <= flagsMax || type === 'read', 'reserved_not_zero')
  check(index === 0 || ['data', 'write', 'read'].includes(type), 'reserved_not_zero')
  const hasSession = !/^0+$/.test(session_id)
  const isOutside = ['hello', 'cookie', 'refuse', 'lost', 'lost_ack'].includes(type)
  if (isOutside) check(!hasSession, 'reserved_not_zero')
  else check(hasSession, 'bad_value')
  check(request_id === 0 || !(isOutside || type === 'welcome'), 'reserved_not_zero')
  const body = parseBody(reader, { version, type, flags, index, session: { session_id, request_id } })
  return version === 2 ? body : Object.assign(body, { version })
}

interface Header {
  version: StreamVersion
  type: (typeof packetTypes)[number]
  flags: number
  index: number
  session: InSession
}

function parseBody(reader: Reader, { version, type, flags, index, session }: Header): StreamBody {
  switch (type) {
    case 'used':
      return parseUsed(reader, session)
    case 'hello':
      return parseHello(reader, version)
    case 'cookie':
      return parseCookie(reader)
    case 'welcome':
      return parseWelcome(reader, session.session_id, version)
    case 'refuse':
      return parseRefuse(reader, version)
    case 'read':
      return parseRead(reader, session, { ...parseReadFlags(flags, version), fragment_size: index })
    case 'data':
      return parseData(reader, session, { index, isPacked: flags === 1 })
    case 'read_error':
      return parseReadError(reader, session)
    case 'ready':
      return parseReady(reader, session)
    case 'report':
      return parseReport(reader, session)
    case 'report_ack':
      return parseReportAck(reader, session)
    case 'write':
      return parseWrite(reader, session, index)
    case 'control':
      return parseControl(reader, session)
    case 'write_ack':
      return parseWriteAck(reader, session)
    case 'probe':
      return parseProbe(reader, session)
    case 'probe_ack':
      return parseProbeAck(reader, session)
    case 'fetch_times':
      return parseFetchTimes(reader, session)
    case 'account':
      return parseAccount(reader, session)
    case 'machine':
      return parseMachine(reader, session)
    case 'network':
      return parseNetwork(reader, session)
    case 'lost':
      return parseLost(reader)
    case 'lost_ack':
      return parseLostAck(reader)
    case 'no_session':
    case 'ready_ack':
    case 'keepalive':
    case 'keepalive_ack':
    case 'account_ack':
      check(reader.bytes.length === headerSize, 'wrong_size')
      return { type, ...session }
  }
}

function parseCookie(reader: Reader): StreamBody {
  check(reader.bytes.length === 64, 'wrong_size')
  return { type: 'cookie', client_nonce: reader.hex(16), cookie: reader.hex(32) }
}

function parseData(
  reader: Reader,
  session: InSession,
  { index, isPacked }: { index: number; isPacked: boolean },
): StreamData {
  const size = reader.bytes.length - headerSize
  check(size > 0 && size <= streamFragmentSizeMax, 'wrong_size')
  check(index < streamFragmentsMax, 'bad_value')
  if (!isPacked) return { type: 'data', ...session, index, payload: reader.hex(size) }
  const left = size - streamPackedPrefixSize
  check(left > 0, 'wrong_size')
  const packed_size = reader.int(4)
  check(packed_size >= left && packed_size < streamReadSizeMax, 'bad_value')
  return { type: 'data', ...session, index, packed_size, payload: reader.hex(left) }
}

function parseLost(reader: Reader): StreamLost {
  check(reader.bytes.length === 104, 'wrong_size')
  const boot_id = reader.hex(16)
  const nonce = reader.hex(16)
  const reason = reader.named(streamLostReasons, 1, 1)
  const code = reader.int(1)
  reader.zeros(2)
  const rest = { restart_in_s: reader.int(4), order_id: reader.hex(16), proof: reader.hex(32) }
  if (reason !== 'refused') {
    check(code === 0, 'reserved_not_zero')
    return { type: 'lost', boot_id, nonce, reason, ...rest }
  }
  return { type: 'lost', boot_id, nonce, reason, refusal: refuseCodes[code - 1] ?? refuse('bad_value'), ...rest }
}

function parseAccount(reader: Reader, session: InSession): StreamAccount {
  const size = reader.bytes.length - headerSize
  check(size > 8 && size <= 8 + 480, 'wrong_size')
  check(isZero(reader.bytes.subarray(headerSize + 4, headerSize + 8)), 'reserved_not_zero')
  const kind = reader.named(streamAccountKinds, 1, 1)
  const last = reader.int(1)
  check(last <= 1, 'bad_value')
  const part = reader.int(2)
  reader.zeros(4)
  return { type: 'account', ...session, kind, part, is_last: last === 1, bytes: reader.hex(size - 8) }
}

function parseMachine(reader: Reader, session: InSession): StreamMachine {
  check(reader.bytes.length === 112, 'wrong_size')
  const cpu_count = reader.int(2)
  const card_vendor = reader.int(2)
  const card_device = reader.int(2)
  reader.zeros(2)
  const memory_mib = reader.int(4)
  const link_mbit = reader.int(4)
  check(cpu_count > 0 && memory_mib > 0, 'bad_value')
  const driver = paddedText(reader, 16)
  const model = paddedText(reader, 64)
  return { type: 'machine', ...session, cpu_count, card_vendor, card_device, memory_mib, link_mbit, driver, model }
}

function paddedText(reader: Reader, size: number): string {
  const padded = reader.take(size).toString('latin1')
  const text = padded.split('\0', 1)[0] ?? ''
  check(isPrintable(text), 'bad_value')
  check(text.padEnd(size, '\0') === padded, 'reserved_not_zero')
  return text
}

function parseLostAck(reader: Reader): StreamBody {
  check(reader.bytes.length === 84, 'wrong_size')
  const nonce = reader.hex(16)
  return { type: 'lost_ack', nonce, ...parseOrder(reader), proof: reader.hex(32) }
}

function parseReadError(reader: Reader, session: InSession): StreamBody {
  check(reader.bytes.length === 20, 'wrong_size')
  check(isZero(reader.bytes.subarray(18)), 'reserved_not_zero')
  return { type: 'read_error', ...session, code: reader.named(readErrorCodes, 2, 1) }
}

function parseReportAck(reader: Reader, session: InSession): StreamBody {
  check(reader.bytes.length === 36, 'wrong_size')
  return { type: 'report_ack', ...session, ...parseOrder(reader) }
}

function parseOrder(reader: Reader): { order: (typeof streamOrders)[number]; order_id: string } {
  const order = reader.named(streamOrders, 1, 0)
  reader.zeros(3)
  const order_id = reader.hex(16)
  const hasId = !/^0+$/.test(order_id)
  check(order !== 'none' || !hasId, 'reserved_not_zero')
  check(order === 'none' || hasId, 'bad_value')
  return { order, order_id }
}

function parseProbe(reader: Reader, session: InSession): StreamBody {
  check(reader.bytes.length === 40, 'wrong_size')
  const size = reader.int(2)
  check(size >= streamPacketSizeMin && size <= streamPacketSizeMax, 'bad_value')
  reader.zeros(22)
  return { type: 'probe', ...session, size }
}

function parseProbeAck(reader: Reader, session: InSession): StreamBody {
  const size = reader.bytes.length
  check(size >= streamPacketSizeMin - streamTagSize && size <= streamPacketSizeMax, 'wrong_size')
  reader.zeros(size - headerSize)
  return { type: 'probe_ack', ...session, size }
}

const helloSizes = {
  2: { token: 240, resumption: 240, ticket: 240 + 8 + sealedTicketSize },
  3: { token: 288, resumption: 240, ticket: 152 + 8 + sealedTicketSize },
}

function parseHello(reader: Reader, version: StreamVersion): StreamHello {
  check(reader.bytes.length >= 240, 'wrong_size')
  const client_nonce = reader.hex(16)
  const cookie = reader.hex(32)
  const kind = reader.named(helloKinds, 1, 0)
  const bits = reader.int(1)
  const packet_size_max = reader.int(2)
  const codecs = version === 3 ? reader.int(1) : 0
  if (version === 3) reader.zeros(3)
  const boot_id = reader.hex(16)
  const client_public = reader.hex(32)
  const proof = reader.hex(32)
  check(reader.bytes.length === helloSizes[version][kind], 'wrong_size')
  const identity = version === 3 && kind === 'token' ? parseIdentity(reader) : undefined
  if (version === 2) reader.zeros(92)
  else if (kind === 'resumption') reader.zeros(88)
  const shown = kind === 'ticket' ? { age_us: reader.hex(8), ticket: reader.hex(sealedTicketSize) } : undefined
  check(bits >> streamCiphers.length === 0, 'reserved_not_zero')
  check(bits !== 0 && packet_size_max >= streamPacketSizeMin, 'bad_value')
  const ciphers = streamCiphers.filter((_, index) => (bits >> index) & 1)
  return {
    type: 'hello',
    client_nonce,
    cookie,
    kind,
    ciphers,
    packet_size_max,
    ...(codecs > 0 && { codecs }),
    boot_id,
    client_public,
    proof,
    ...identity,
    ...(shown && { shown }),
  }
}

function parseIdentity(reader: Reader): Pick<StreamHello, 'device_key' | 'signature'> {
  const device_key = reader.hex(65)
  const signature = reader.hex(64)
  reader.zeros(7)
  const hasSignature = !/^0+$/.test(signature)
  if (/^0+$/.test(device_key)) {
    check(!hasSignature, 'reserved_not_zero')
    return {}
  }
  check(device_key.startsWith('04'), 'bad_value')
  return hasSignature ? { device_key, signature } : { device_key }
}

function parseWelcome(reader: Reader, session_id: string, version: StreamVersion): StreamWelcome {
  const size = reader.bytes.length
  check(size >= welcomeSize && size <= streamPacketSizeMax, 'wrong_size')
  const client_nonce = reader.hex(16)
  const edge_public = reader.hex(32)
  const cipher = reader.named(streamCiphers, 1, 0)
  reader.zeros(7)
  const version_tag = reader.hex(8)
  const disk_size = reader.hex(8)
  const fragment_size = reader.int(2)
  const write_cache = reader.named(streamWriteCaches, 1, 0)
  const codec = reader.int(1)
  check(codec === 0 || version === 3, 'reserved_not_zero')
  check(codec <= streamCodecsMax, 'bad_value')
  const read_size_max = reader.int(4)
  const outstanding_bytes_max = reader.int(4)
  const profile_size = reader.int(4)
  const resume_secret = reader.hex(32)
  const version_id = reader.hex(16)
  const write_cache_size = reader.hex(8)
  const write_cache_id = reader.hex(8)
  const { failover, size: listSize } = parseFailover(reader.bytes.subarray(welcomeSize), version)
  const padding = size - welcomeSize - listSize
  check((cipher === 'clear') === /^0+$/.test(edge_public), 'bad_value')
  const hasCache = write_cache !== 'device_ram'
  check(!/^0+$/.test(write_cache_size) === hasCache, 'bad_value')
  check(!/^0+$/.test(write_cache_id) === hasCache, 'bad_value')
  const disk = BigInt(`0x${disk_size}`)
  check(disk > 0n && disk % BigInt(streamSectorSize) === 0n, 'bad_value')
  check(profile_size % streamSectorSize === 0 && profile_size <= streamProfileSizeMax, 'bad_value')
  check(fragment_size >= streamFragmentSizeMin && fragment_size <= streamFragmentSizeMax, 'bad_value')
  check(read_size_max >= streamReadSizePromised && read_size_max <= streamReadSizeMax, 'bad_value')
  check(outstanding_bytes_max >= streamReadSizePromised, 'bad_value')
  return {
    type: 'welcome',
    session_id,
    client_nonce,
    edge_public,
    cipher,
    version_tag,
    disk_size,
    fragment_size,
    read_size_max,
    outstanding_bytes_max,
    resume_secret,
    version_id,
    profile_size,
    write_cache,
    ...(codec > 0 && { codec }),
    write_cache_size,
    write_cache_id,
    ...(failover && { failover }),
    padding,
  }
}

function parseRefuse(reader: Reader, version: StreamVersion): StreamBody {
  check(reader.bytes.length === 36, 'wrong_size')
  check(isZero(reader.bytes.subarray(34)), 'reserved_not_zero')
  const client_nonce = reader.hex(16)
  const code = reader.named(refuseCodes, 2, 1)
  check(version === 3 || code !== 'identity_refused', 'bad_value')
  return { type: 'refuse', client_nonce, code }
}

function parseReadFlags(flags: number, version: StreamVersion): Pick<StreamRead, 'kind' | 'is_plain'> {
  const isPlain = version === 3 && flags >= readPlainFlag
  const kind = readKinds[isPlain ? flags - readPlainFlag : flags] ?? refuse('bad_value')
  check(!isPlain || kind !== 'profile', 'bad_value')
  return isPlain ? { kind, is_plain: true } : { kind }
}

type ReadHead = Pick<StreamRead, 'kind' | 'is_plain' | 'fragment_size'>

function parseRead(reader: Reader, session: InSession, head: ReadHead): StreamRead {
  check(reader.bytes.length >= 40, 'wrong_size')
  const version_tag = reader.hex(8)
  const offset = reader.hex(8)
  const length = reader.int(4)
  const range_count = reader.int(2)
  const attempt = reader.int(2)
  check(range_count <= streamRangesMax, 'bad_value')
  check(reader.bytes.length === 40 + 4 * range_count, 'wrong_size')
  check(head.fragment_size >= streamFragmentSizeMin && head.fragment_size <= streamFragmentSizeMax, 'bad_value')
  check(length > 0 && length % streamSectorSize === 0, 'bad_value')
  check(BigInt(`0x${offset}`) % BigInt(streamSectorSize) === 0n, 'bad_value')
  const ranges: [number, number][] = []
  let end = 0
  for (let index = 0; index < range_count; index += 1) {
    const first = reader.int(2)
    const count = reader.int(2)
    check(count > 0 && first >= end && first + count <= streamFragmentsMax, 'bad_value')
    end = first + count
    ranges.push([first, count])
  }
  return { type: 'read', ...session, ...head, version_tag, offset, length, attempt, ranges }
}

function parseReady(reader: Reader, session: InSession): StreamReady {
  check(reader.bytes.length >= 40 && reader.bytes.length <= 104, 'wrong_size')
  check(isZero(reader.bytes.subarray(17, 20)), 'reserved_not_zero')
  const outcome = reader.named(readyOutcomes, 1, 0)
  reader.zeros(3)
  const uptime_us = reader.hex(8)
  const padded = reader.take(12).toString('latin1')
  const end = padded.indexOf('\0')
  const code = end < 0 ? padded : padded.slice(0, end)
  check(isPrintable(code), 'bad_value')
  check(code.padEnd(12, '\0') === padded, 'reserved_not_zero')
  const sentence = reader.take(reader.bytes.length - 40).toString('latin1')
  check(isPrintable(sentence), 'bad_value')
  return { type: 'ready', ...session, outcome, uptime_us, code, sentence }
}

function parseReport(reader: Reader, session: InSession): StreamReport {
  const size = reader.bytes.length
  check(size >= 60 && size <= 1200, 'wrong_size')
  const uptime_us = reader.hex(8)
  const order_id = reader.hex(16)
  const write_cache_used = reader.hex(8)
  const write_cache_size = reader.hex(8)
  const step_count = reader.int(1)
  const times_count = reader.int(1)
  reader.zeros(2)
  check(step_count <= streamStepsMax, 'bad_value')
  check(write_cache_used <= write_cache_size, 'bad_value')
  const steps: StreamReport['steps'] = []
  for (let index = 0; index < step_count; index += 1) {
    check(reader.position + 18 <= size, 'wrong_size')
    const group = reader.int(1)
    const name_size = reader.int(1)
    const start_us = reader.hex(8)
    const duration_us = reader.hex(8)
    check(name_size >= 1 && name_size <= 32, 'bad_value')
    check(reader.position + name_size <= size, 'wrong_size')
    const name = reader.take(name_size).toString('latin1')
    check(isPrintable(name), 'bad_value')
    steps.push({ group: guestStepGroups[group] ?? refuse('bad_value'), start_us, duration_us, name })
  }
  const read_times = parseReadTimes(reader, times_count)
  check(reader.position === size, 'wrong_size')
  return {
    type: 'report',
    ...session,
    uptime_us,
    order_id,
    write_cache_used,
    write_cache_size,
    steps,
    ...(times_count > 0 && { read_times }),
  }
}
