import {
  type InSession,
  type StreamNetwork,
  streamDuplexes,
  streamPacketSizeMax,
  streamPacketSizeMin,
} from './packet.ts'
import { check, isZero, type Reader } from './reader.ts'

/** Parses and emits NETWORK (STREAM.md, "What the network does"). */

const size = 104
const cardNumbers = [
  'link_mbit',
  'carrier_changes',
  'receive_errors',
  'crc_errors',
  'receive_drops',
  'send_errors',
  'socket_drops',
] as const
const sizes = ['size_max', 'size', 'size_lost', 'size_lost_count', 'run_max', 'reorder_max'] as const
const counts = [
  'expected',
  'lost',
  'runs',
  'run_packets',
  'ordered',
  'reordered',
  'rtt_count',
  'rtt_min_us',
  'rtt_p50_us',
  'rtt_p95_us',
] as const

function take<Name extends string>(reader: Reader, names: readonly Name[], bytes: 2 | 4): Record<Name, number> {
  return Object.fromEntries(names.map((name) => [name, reader.int(bytes)])) as Record<Name, number>
}

export function parseNetwork(reader: Reader, session: InSession): StreamNetwork {
  check(reader.bytes.length === size, 'wrong_size')
  check(isZero(reader.bytes.subarray(19, 20)) && isZero(reader.bytes.subarray(34, 36)), 'reserved_not_zero')
  const duplex = reader.named(streamDuplexes, 1, 0)
  const [settled, final] = [reader.int(1), reader.int(1)]
  check(settled <= 1 && final <= 1, 'bad_value')
  reader.zeros(1)
  const mtu = reader.int(2)
  const ofSizes = take(reader, sizes, 2)
  reader.zeros(2)
  const card = { duplex, mtu, ...take(reader, cardNumbers, 4) }
  const state = { is_settled: settled === 1, is_final: final === 1 }
  const packet: StreamNetwork = { type: 'network', ...session, card, ...state, ...ofSizes, ...take(reader, counts, 4) }
  check(isValid(packet), 'bad_value')
  return packet
}

function isValid(packet: StreamNetwork): boolean {
  const { size, size_max, size_lost, size_lost_count, rtt_min_us, rtt_p50_us, rtt_p95_us } = packet
  if (size < streamPacketSizeMin || size > size_max || size_max > streamPacketSizeMax) return false
  if ((size_lost === 0) !== (size_lost_count === 0)) return false
  if (size_lost !== 0 && (size_lost <= size || size_lost > size_max)) return false
  if (packet.lost > packet.expected || packet.reordered > packet.ordered) return false
  if (packet.runs > packet.run_packets || packet.run_max > packet.run_packets) return false
  if (packet.reordered === 0 && packet.reorder_max !== 0) return false
  if (rtt_min_us > rtt_p50_us || rtt_p50_us > rtt_p95_us) return false
  return packet.rtt_count > 0 || rtt_p95_us === 0
}

export function emitNetwork(packet: StreamNetwork): Buffer[] {
  const bytes = Buffer.alloc(size - 16)
  bytes[0] = streamDuplexes.indexOf(packet.card.duplex)
  bytes[1] = Number(packet.is_settled)
  bytes[2] = Number(packet.is_final)
  bytes.writeUInt16BE(packet.card.mtu, 4)
  for (const [index, name] of sizes.entries()) bytes.writeUInt16BE(packet[name], 6 + 2 * index)
  let at = 6 + 2 * sizes.length + 2
  for (const name of cardNumbers) at = bytes.writeUInt32BE(packet.card[name], at)
  for (const name of counts) at = bytes.writeUInt32BE(packet[name], at)
  return [bytes]
}
