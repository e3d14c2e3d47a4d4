import { readFileSync } from 'node:fs'

/** A TCP or UDP packet over IPv4 as it passed the switch. */
export interface SeenPacket {
  /** By the wall clock. */
  atUs: number
  sourceMac: string
  sourceIp: string
  destinationIp: string
  protocol: 'tcp' | 'udp'
  sourcePort: number
  destinationPort: number
  /** TCP only: the sequence number of the payload's first byte, and the next byte that the sender expects. */
  sequence: number
  acknowledgement: number
  /** TCP only: the packet opens a connection, or resets one. */
  isSyn: boolean
  isReset: boolean
  /** Bytes after the TCP or UDP header, in the packet itself, not in the recording. */
  payloadSize: number
  /** As much of the payload as was recorded. */
  payload: Buffer
}

const fileHeaderSize = 24
const recordHeaderSize = 16
const ethernetSize = 14

/** Reads a recording of tcpdump (pcap, µs, Ethernet; https://www.tcpdump.org/manpages/pcap-savefile.5.html). */
export function readPackets(file: string): SeenPacket[] {
  const bytes = readFileSync(file)
  if (bytes.readUInt32LE(0) !== 0xa1b2c3d4) throw new Error(`${file} is not a pcap file of this machine`)
  const packets: SeenPacket[] = []
  for (let at = fileHeaderSize; at + recordHeaderSize <= bytes.length; ) {
    const size = bytes.readUInt32LE(at + 8)
    const atUs = bytes.readUInt32LE(at) * 1_000_000 + bytes.readUInt32LE(at + 4)
    const frame = bytes.subarray(at + recordHeaderSize, at + recordHeaderSize + size)
    const packet = parseFrame(frame, atUs)
    if (packet) packets.push(packet)
    at += recordHeaderSize + size
  }
  return packets
}

function parseFrame(frame: Buffer, atUs: number): SeenPacket | undefined {
  if (frame.length < ethernetSize + 20 || frame.readUInt16BE(12) !== 0x0800) return undefined
  const ip = frame.subarray(ethernetSize)
  const ipHeaderSize = ((ip[0] ?? 0) & 0x0f) * 4
  const protocol = ({ 6: 'tcp', 17: 'udp' } as const)[ip[9] ?? 0]
  const transport = ip.subarray(ipHeaderSize)
  if (!protocol || transport.length < (protocol === 'tcp' ? 20 : 8)) return undefined
  const transportHeaderSize = protocol === 'udp' ? 8 : ((transport[12] ?? 0) >> 4) * 4
  return {
    atUs,
    sourceMac: [...frame.subarray(6, 12)].map((byte) => byte.toString(16).padStart(2, '0')).join(':'),
    sourceIp: ip.subarray(12, 16).join('.'),
    destinationIp: ip.subarray(16, 20).join('.'),
    protocol,
    sourcePort: transport.readUInt16BE(0),
    destinationPort: transport.readUInt16BE(2),
    sequence: protocol === 'tcp' ? transport.readUInt32BE(4) : 0,
    acknowledgement: protocol === 'tcp' ? transport.readUInt32BE(8) : 0,
    isSyn: protocol === 'tcp' && ((transport[13] ?? 0) & 0x02) !== 0,
    isReset: protocol === 'tcp' && ((transport[13] ?? 0) & 0x04) !== 0,
    payloadSize: ip.readUInt16BE(2) - ipHeaderSize - transportHeaderSize,
    payload: transport.subarray(transportHeaderSize),
  }
}
