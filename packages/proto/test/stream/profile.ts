import type { InSession, StreamUsed } from './packet.ts'
import { check, headerSize, type Reader } from './reader.ts'

/** Parses and emits USED (STREAM.md, "Boot profile"). */

const entrySize = 8
const packetSizeMax = 16 + 1440

export function parseUsed(reader: Reader, session: InSession): StreamUsed {
  const size = reader.bytes.length - headerSize
  check(size > 0 && size % entrySize === 0 && reader.bytes.length <= packetSizeMax, 'wrong_size')
  const units: [number, number][] = []
  for (let at = 0; at < size; at += entrySize) {
    const index = Number.parseInt(reader.hex(5), 16)
    const blocks = reader.int(1)
    reader.zeros(2)
    check(blocks > 0, 'bad_value')
    units.push([index, blocks])
  }
  return { type: 'used', ...session, units }
}

export function emitUsed(packet: StreamUsed): Buffer[] {
  return packet.units.map(([index, blocks]) => {
    const bytes = Buffer.alloc(entrySize)
    bytes.writeUIntBE(index, 0, 5)
    bytes.writeUInt8(blocks, 5)
    return bytes
  })
}
