import { streamCiphers } from '../../src/stream-ciphers.ts'
import { guestStepGroups } from '../../src/uplink.ts'
import { emitNetwork } from './network.ts'
import {
  helloKinds,
  packetTypes,
  readErrorCodes,
  readKinds,
  readPlainFlag,
  readyOutcomes,
  refuseCodes,
  type StreamLostAck,
  type StreamPacket,
  type StreamVersion,
  streamAccountKinds,
  streamLostReasons,
  streamOperations,
  streamOrders,
  streamVersions,
  streamWriteCaches,
  streamWriteCodes,
} from './packet.ts'
import { emitUsed } from './profile.ts'
import { emitFailover } from './ticket.ts'
import { emitReadTimes } from './times.ts'

/** Returns the packet's bytes. `parseStreamPacket` accepts the same values. */
export function emitStreamPacket(packet: StreamPacket): Buffer {
  const index = packet.type === 'read' ? packet.fragment_size : 'index' in packet ? packet.index : 0
  const request = 'request_id' in packet ? packet.request_id : 0
  const session = 'session_id' in packet ? packet.session_id : '0'.repeat(16)
  const { version = streamVersions[0] } = packet
  const first = (version << 4) | flagsOf(packet)
  const header = [int(first, 1), int(packetTypes.indexOf(packet.type), 1), int(index, 2), int(request, 4), hex(session)]
  return Buffer.concat([...header, ...bodyOf(packet, version)])
}

function flagsOf(packet: StreamPacket): number {
  if (packet.type === 'read') return readKinds.indexOf(packet.kind) + (packet.is_plain ? readPlainFlag : 0)
  return packet.type === 'data' && packet.packed_size ? 1 : 0
}

const hex = (text: string) => Buffer.from(text, 'hex')

function int(value: number, size: 1 | 2 | 4): Buffer {
  const bytes = Buffer.alloc(size)
  bytes.writeUIntBE(value, 0, size)
  return bytes
}

function bodyOf(packet: StreamPacket, version: StreamVersion): Buffer[] {
  switch (packet.type) {
    case 'used':
      return emitUsed(packet)
    case 'hello':
      return emitHello(packet, version)
    case 'cookie':
      return [hex(packet.client_nonce + packet.cookie)]
    case 'welcome':
      return emitWelcome(packet, version)
    case 'refuse':
      return [hex(packet.client_nonce), int(refuseCodes.indexOf(packet.code) + 1, 2), Buffer.alloc(2)]
    case 'read':
      return emitRead(packet)
    case 'data':
      return [...(packet.packed_size ? [int(packet.packed_size, 4)] : []), hex(packet.payload)]
    case 'read_error':
      return [int(readErrorCodes.indexOf(packet.code) + 1, 2), Buffer.alloc(2)]
    case 'ready':
      return [
        int(readyOutcomes.indexOf(packet.outcome), 1),
        Buffer.alloc(3),
        hex(packet.uptime_us),
        Buffer.from(packet.code.padEnd(12, '\0') + packet.sentence, 'latin1'),
      ]
    case 'report':
      return emitReport(packet)
    case 'report_ack':
      return [int(streamOrders.indexOf(packet.order), 1), Buffer.alloc(3), hex(packet.order_id)]
    case 'write':
      return emitWrite(packet)
    case 'control':
      return emitControl(packet)
    case 'write_ack':
      return [int(streamWriteCodes.indexOf(packet.code), 2), Buffer.alloc(2), hex(packet.missing)]
    case 'probe':
      return [int(packet.size, 2), Buffer.alloc(22)]
    case 'probe_ack':
      return [Buffer.alloc(packet.size - 16)]
    case 'fetch_times':
      return packet.reads.flatMap(([id, us]) => [int(id, 4), int(us, 4)])
    case 'account':
      return emitAccount(packet)
    case 'machine':
      return emitMachine(packet)
    case 'network':
      return emitNetwork(packet)
    case 'lost':
      return emitLost(packet)
    case 'lost_ack':
      return emitLostAck(packet)
    case 'no_session':
    case 'ready_ack':
    case 'keepalive':
    case 'keepalive_ack':
    case 'account_ack':
      return []
  }
}

function emitLostAck({ nonce, order, order_id, proof }: StreamLostAck): Buffer[] {
  return [hex(nonce), int(streamOrders.indexOf(order), 1), Buffer.alloc(3), hex(order_id + proof)]
}

function emitAccount(packet: Extract<StreamPacket, { type: 'account' }>): Buffer[] {
  return [
    int(streamAccountKinds.indexOf(packet.kind) + 1, 1),
    int(packet.is_last ? 1 : 0, 1),
    int(packet.part, 2),
    Buffer.alloc(4),
    hex(packet.bytes),
  ]
}

function emitMachine(packet: Extract<StreamPacket, { type: 'machine' }>): Buffer[] {
  return [
    int(packet.cpu_count, 2),
    int(packet.card_vendor, 2),
    int(packet.card_device, 2),
    Buffer.alloc(2),
    int(packet.memory_mib, 4),
    int(packet.link_mbit, 4),
    Buffer.from(packet.driver.padEnd(16, '\0') + packet.model.padEnd(64, '\0'), 'latin1'),
  ]
}

function emitLost(packet: Extract<StreamPacket, { type: 'lost' }>): Buffer[] {
  return [
    hex(packet.boot_id + packet.nonce),
    int(streamLostReasons.indexOf(packet.reason) + 1, 1),
    int(packet.refusal ? refuseCodes.indexOf(packet.refusal) + 1 : 0, 1),
    Buffer.alloc(2),
    int(packet.restart_in_s, 4),
    hex(packet.order_id + packet.proof),
  ]
}

/** Zeros behind the fields of all kinds: in version 2 to 240 bytes, in version 3 by the kind. */
function emitHelloRest(packet: Extract<StreamPacket, { type: 'hello' }>, version: StreamVersion): Buffer[] {
  if (version === 2) return [Buffer.alloc(92)]
  if (packet.kind === 'resumption') return [Buffer.alloc(88)]
  if (packet.kind === 'ticket') return []
  const { device_key = '00'.repeat(65), signature = '00'.repeat(64) } = packet
  return [hex(device_key + signature), Buffer.alloc(7)]
}

function emitHello(packet: Extract<StreamPacket, { type: 'hello' }>, version: StreamVersion): Buffer[] {
  return [
    hex(packet.client_nonce + packet.cookie),
    int(helloKinds.indexOf(packet.kind), 1),
    int(
      packet.ciphers.reduce((bits, cipher) => bits | (1 << streamCiphers.indexOf(cipher)), 0),
      1,
    ),
    int(packet.packet_size_max, 2),
    ...(version === 3 ? [int(packet.codecs ?? 0, 1), Buffer.alloc(3)] : []),
    hex(packet.boot_id + packet.client_public + packet.proof),
    ...emitHelloRest(packet, version),
    ...(packet.shown ? [hex(packet.shown.age_us + packet.shown.ticket)] : []),
  ]
}

function emitWelcome(packet: Extract<StreamPacket, { type: 'welcome' }>, version: StreamVersion): Buffer[] {
  return [
    hex(packet.client_nonce + packet.edge_public),
    int(streamCiphers.indexOf(packet.cipher), 1),
    Buffer.alloc(7),
    hex(packet.version_tag + packet.disk_size),
    int(packet.fragment_size, 2),
    int(streamWriteCaches.indexOf(packet.write_cache), 1),
    int(packet.codec ?? 0, 1),
    int(packet.read_size_max, 4),
    int(packet.outstanding_bytes_max, 4),
    int(packet.profile_size, 4),
    hex(packet.resume_secret + packet.version_id),
    hex(packet.write_cache_size + packet.write_cache_id),
    ...(packet.failover ? [emitFailover(packet.failover, version)] : []),
    Buffer.alloc(packet.padding),
  ]
}

function emitReport(packet: Extract<StreamPacket, { type: 'report' }>): Buffer[] {
  return [
    hex(packet.uptime_us + packet.order_id + packet.write_cache_used + packet.write_cache_size),
    int(packet.steps.length, 1),
    int(packet.read_times?.length ?? 0, 1),
    Buffer.alloc(2),
    ...packet.steps.flatMap((step) => [
      int(guestStepGroups.indexOf(step.group), 1),
      int(step.name.length, 1),
      hex(step.start_us + step.duration_us),
      Buffer.from(step.name, 'latin1'),
    ]),
    ...emitReadTimes(packet.read_times ?? []),
  ]
}

function emitWrite(packet: Extract<StreamPacket, { type: 'write' }>): Buffer[] {
  return [
    hex(packet.version_tag + packet.offset),
    int(packet.length, 4),
    int(packet.fragment_size, 2),
    int(packet.attempt, 2),
    hex(packet.payload),
  ]
}

function emitControl(packet: Extract<StreamPacket, { type: 'control' }>): Buffer[] {
  return [
    hex(packet.version_tag + packet.offset),
    int(packet.length, 4),
    int(streamOperations.indexOf(packet.operation) + 1, 1),
    Buffer.alloc(1),
    int(packet.attempt, 2),
  ]
}

function emitRead(packet: Extract<StreamPacket, { type: 'read' }>): Buffer[] {
  return [
    hex(packet.version_tag + packet.offset),
    int(packet.length, 4),
    int(packet.ranges.length, 2),
    int(packet.attempt, 2),
    ...packet.ranges.flatMap(([start, count]) => [int(start, 2), int(count, 2)]),
  ]
}
