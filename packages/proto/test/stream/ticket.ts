import { createCipheriv, createDecipheriv, createHmac } from 'node:crypto'
import type { StreamFailover, StreamVersion } from './packet.ts'
import { streamWriteCaches } from './packet.ts'
import { check, isZero, Reader } from './reader.ts'

/** Where a device may fail over, and what it shows there (STREAM.md, "Fail-over"). */

/** Of each format; the body and the tag fill the rest. */
const saltSizes = { 1: 24, 2: 16 }
export type TicketFormat = keyof typeof saltSizes
const tagSize = 16
export const sealedTicketSize = 296
const edgesMax = 8
const endpointSize = 6
const failoverSize = 8 + edgesMax * endpointSize + sealedTicketSize
/** In version 3 the edges follow the ticket. */
const fixedSize = 8 + sealedTicketSize
const addressSize = 18
const mappedPrefix = Buffer.from('00000000000000000000ffff', 'hex')

interface ParsedFailover {
  failover?: StreamFailover
  size: number
}

/** Parses what follows the other fields of WELCOME; without edges that have an IPv4 address there is no list. */
export function parseFailover(bytes: Buffer, version: StreamVersion): ParsedFailover {
  const reader = new Reader(bytes)
  reader.position = 0
  if (bytes.length < (version === 2 ? failoverSize : fixedSize + addressSize) || bytes.readUInt8(4) === 0) {
    reader.zeros(bytes.length)
    return { size: 0 }
  }
  return version === 2 ? parseOlder(reader) : parseNewer(reader)
}

function parseNewer(reader: Reader): ParsedFailover {
  const lifetime_s = reader.int(4)
  const count = reader.int(1)
  reader.zeros(3)
  check(count <= edgesMax && lifetime_s > 0, 'bad_value')
  const ticket = reader.hex(sealedTicketSize)
  const size = fixedSize + count * addressSize
  check(reader.bytes.length >= size, 'wrong_size')
  const edges: string[] = []
  for (let index = 0; index < count; index += 1) {
    const address = reader.take(16)
    const port = reader.int(2)
    const isMapped = address.subarray(0, 12).equals(mappedPrefix)
    check(port !== 0 && !isZero(isMapped ? address.subarray(12) : address), 'bad_value')
    if (isMapped) edges.push(`${[...address.subarray(12)].join('.')}:${port}`)
  }
  reader.zeros(reader.bytes.length - size)
  return edges.length > 0 ? { failover: { lifetime_s, edges, ticket }, size } : { size }
}

function parseOlder(reader: Reader): ParsedFailover {
  const { bytes } = reader
  const lifetime_s = reader.int(4)
  const count = reader.int(1)
  reader.zeros(3)
  const places = Array.from({ length: edgesMax }, () => reader.take(endpointSize))
  const ticket = reader.hex(sealedTicketSize)
  reader.zeros(bytes.length - failoverSize)
  check(count <= edgesMax && lifetime_s > 0, 'bad_value')
  const edges = places.slice(0, count).map((place) => {
    const port = place.readUInt16BE(4)
    check(port !== 0 && place.readUInt32BE(0) !== 0, 'bad_value')
    return `${[...place.subarray(0, 4)].join('.')}:${port}`
  })
  for (const place of places.slice(count))
    check(
      place.every((byte) => byte === 0),
      'reserved_not_zero',
    )
  return { failover: { lifetime_s, edges, ticket }, size: failoverSize }
}

function emitAddress(edge: string): Buffer {
  const [ip = '', port] = edge.split(':')
  const bytes = Buffer.concat([mappedPrefix, Buffer.from(ip.split('.').map(Number)), Buffer.alloc(2)])
  bytes.writeUInt16BE(Number(port), 16)
  return bytes
}

export function emitFailover({ lifetime_s, edges, ticket }: StreamFailover, version: StreamVersion): Buffer {
  if (version === 3) {
    const head = Buffer.alloc(8)
    head.writeUInt32BE(lifetime_s, 0)
    head.writeUInt8(edges.length, 4)
    return Buffer.concat([head, Buffer.from(ticket, 'hex'), ...edges.map(emitAddress)])
  }
  const bytes = Buffer.alloc(failoverSize)
  bytes.writeUInt32BE(lifetime_s, 0)
  bytes.writeUInt8(edges.length, 4)
  for (const [index, edge] of edges.entries()) {
    const [ip = '', port] = edge.split(':')
    const at = 8 + index * endpointSize
    Buffer.from(ip.split('.').map(Number)).copy(bytes, at)
    bytes.writeUInt16BE(Number(port), at + 4)
  }
  bytes.write(ticket, failoverSize - sealedTicketSize, 'hex')
  return bytes
}

/** The content of a ticket. Bytes are hex, 64-bit numbers 16 hex digits, phase times µs since the start of the boot. */
export interface StreamTicket {
  boot_id: string
  version_id: string
  vdisk_id: string
  device_id: string
  edge_id: string
  resume_secret: string
  mac: string
  write_cache: (typeof streamWriteCaches)[number]
  flags: number
  hand_overs: number
  started_unix_ms: string
  elapsed_us: string
  expires_unix_ms: string
  disk_size: string
  /** Format 2. */
  device_address?: string
  /** The start and end of each phase, 12 hex digits each, all f without a phase. */
  phases: string[]
}

const keyOf = (key: Buffer, salt: Buffer, format: TicketFormat) =>
  createHmac('sha256', key).update(`bootfarm-ticket-v${format}`).update(salt).digest()

/** The salt's size says the format. */
const formatOf = (salt: Buffer): TicketFormat => (salt.length === saltSizes[1] ? 1 : 2)

export function sealTicket(key: Buffer, salt: Buffer, ticket: StreamTicket): Buffer {
  const { boot_id, version_id, vdisk_id, device_id, edge_id, resume_secret, mac } = ticket
  const format = formatOf(salt)
  const middle = Buffer.alloc(10)
  middle.writeUInt8(streamWriteCaches.indexOf(ticket.write_cache), 0)
  middle.writeUInt8(ticket.flags, 1)
  middle.writeUInt16BE(ticket.hand_overs, 2)
  if (format === 2) middle.writeUIntBE(Number(BigInt(`0x${ticket.disk_size}`) / 512n), 4, 6)
  const body = Buffer.concat([
    Buffer.from(boot_id + version_id + vdisk_id + device_id + edge_id + resume_secret + mac, 'hex'),
    middle,
    Buffer.from(
      ticket.started_unix_ms +
        ticket.elapsed_us +
        ticket.expires_unix_ms +
        (format === 1 ? ticket.disk_size : ticket.device_address) +
        ticket.phases.join(''),
      'hex',
    ),
  ])
  const cipher = createCipheriv('chacha20-poly1305', keyOf(key, salt, format), Buffer.alloc(12), {
    authTagLength: tagSize,
  })
  return Buffer.concat([salt, cipher.update(body), cipher.final(), cipher.getAuthTag()])
}

/** Opens a ticket; throws where no edge of the site has sealed it. */
export function openTicket(key: Buffer, sealed: Buffer, format: TicketFormat): Buffer {
  const salt = sealed.subarray(0, saltSizes[format])
  const decipher = createDecipheriv('chacha20-poly1305', keyOf(key, salt, format), Buffer.alloc(12), {
    authTagLength: tagSize,
  })
  decipher.setAuthTag(sealed.subarray(-tagSize))
  return Buffer.concat([decipher.update(sealed.subarray(salt.length, -tagSize)), decipher.final()])
}
