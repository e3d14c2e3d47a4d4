import { createCipheriv, createDecipheriv, createHmac } from 'node:crypto'
import type { StreamFailover } from './packet.ts'
import { streamWriteCaches } from './packet.ts'
import { check, Reader } from './reader.ts'

/** Where a device may fail over, and what it shows there (STREAM.md, "Fail-over"). */

const saltSize = 24
const bodySize = 256
const tagSize = 16
export const sealedTicketSize = saltSize + bodySize + tagSize
const edgesMax = 8
const endpointSize = 6
export const failoverSize = 8 + edgesMax * endpointSize + sealedTicketSize

/** Parses what follows the other fields of WELCOME; undefined where all of it is zeros. */
export function parseFailover(bytes: Buffer): StreamFailover | undefined {
  const reader = new Reader(bytes)
  reader.position = 0
  if (bytes.length < failoverSize || bytes.readUInt8(4) === 0) {
    reader.zeros(bytes.length)
    return undefined
  }
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
  return { lifetime_s, edges, ticket }
}

export function emitFailover({ lifetime_s, edges, ticket }: StreamFailover): Buffer {
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
  /** The start and end of each phase, 12 hex digits each, all f without a phase. */
  phases: string[]
}

const keyOf = (key: Buffer, salt: Buffer) =>
  createHmac('sha256', key).update('bootfarm-ticket-v1').update(salt).digest()

export function sealTicket(key: Buffer, salt: Buffer, ticket: StreamTicket): Buffer {
  const { boot_id, version_id, vdisk_id, device_id, edge_id, resume_secret, mac } = ticket
  const middle = Buffer.alloc(10)
  middle.writeUInt8(streamWriteCaches.indexOf(ticket.write_cache), 0)
  middle.writeUInt8(ticket.flags, 1)
  middle.writeUInt16BE(ticket.hand_overs, 2)
  const body = Buffer.concat([
    Buffer.from(boot_id + version_id + vdisk_id + device_id + edge_id + resume_secret + mac, 'hex'),
    middle,
    Buffer.from(
      ticket.started_unix_ms + ticket.elapsed_us + ticket.expires_unix_ms + ticket.disk_size + ticket.phases.join(''),
      'hex',
    ),
  ])
  const cipher = createCipheriv('chacha20-poly1305', keyOf(key, salt), Buffer.alloc(12), {
    authTagLength: tagSize,
  })
  return Buffer.concat([salt, cipher.update(body), cipher.final(), cipher.getAuthTag()])
}

/** Opens a ticket; throws where no edge of the site has sealed it. */
export function openTicket(key: Buffer, sealed: Buffer): Buffer {
  const decipher = createDecipheriv('chacha20-poly1305', keyOf(key, sealed.subarray(0, saltSize)), Buffer.alloc(12), {
    authTagLength: tagSize,
  })
  decipher.setAuthTag(sealed.subarray(saltSize + bodySize))
  return Buffer.concat([decipher.update(sealed.subarray(saltSize, saltSize + bodySize)), decipher.final()])
}
