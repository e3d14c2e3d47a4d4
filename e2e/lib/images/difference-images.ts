import { closeSync, openSync, readSync, writeSync } from 'node:fs'
import path from 'node:path'

/** Bytes of a difference at a place of its disk: both are whole sectors. */
export interface Change {
  at: number
  bytes: Buffer
}

const sector = 512
const mib = 1 << 20

/** Writes places of a file; the rest is zeros. */
class Places {
  readonly #fd: number

  constructor(file: string) {
    this.#fd = openSync(file, 'w')
  }

  write(bytes: Buffer, at: number): void {
    writeSync(this.#fd, bytes, 0, bytes.length, at)
  }

  close(): void {
    closeSync(this.#fd)
  }
}

function readAt(file: string, at: number, size: number): Buffer {
  const bytes = Buffer.alloc(size)
  const fd = openSync(file, 'r')
  readSync(fd, bytes, 0, size, at)
  closeSync(fd)
  return bytes
}

/** The sectors of a disk that a difference has, by the blocks of its format. */
function blocksOf(changes: Change[], blockSize: number): Map<number, { data: Buffer; sectors: Set<number> }> {
  const blocks = new Map<number, { data: Buffer; sectors: Set<number> }>()
  for (const change of changes) {
    for (let offset = 0; offset < change.bytes.length; offset += sector) {
      const place = change.at + offset
      const index = Math.floor(place / blockSize)
      const block = blocks.get(index) ?? { data: Buffer.alloc(blockSize), sectors: new Set<number>() }
      blocks.set(index, block)
      change.bytes.copy(block.data, place % blockSize, offset, offset + sector)
      block.sectors.add((place % blockSize) / sector)
    }
  }
  return blocks
}

/** The complement of the sum of all bytes, as VHD has it. */
function vhdChecksum(bytes: Buffer, at: number): void {
  bytes.writeUInt32BE(0, at)
  let sum = 0
  for (const byte of bytes) sum += byte
  bytes.writeUInt32BE(~sum >>> 0, at)
}

const vhdBlock = 2 * mib

/** Makes a differencing VHD of another VHD, which QEMU cannot. */
export function writeVhdDifference(file: string, parent: string, id: number, changes: Change[]): void {
  const parentFooter = readAt(parent, 0, sector)
  const size = Number(parentFooter.readBigUInt64BE(48))
  const footer = Buffer.from(parentFooter)
  footer.writeBigUInt64BE(512n, 16)
  footer.writeUInt32BE(4, 60)
  footer.fill(id, 68, 84)
  vhdChecksum(footer, 64)
  const entries = Math.ceil(size / vhdBlock)
  const tableSize = Math.ceil((entries * 4) / sector) * sector
  const header = Buffer.alloc(1024)
  header.write('cxsparse')
  header.fill(0xff, 8, 16)
  header.writeBigUInt64BE(1536n, 16)
  header.writeUInt32BE(0x10000, 24)
  header.writeUInt32BE(entries, 28)
  header.writeUInt32BE(vhdBlock, 32)
  parentFooter.copy(header, 40, 68, 84)
  const name = path.basename(parent)
  Buffer.from(name, 'utf16le').swap16().copy(header, 64)
  const locator = Buffer.from(`.\\${name}`, 'utf16le')
  header.write('W2ru', 576)
  header.writeUInt32BE(sector, 580)
  header.writeUInt32BE(locator.length, 584)
  header.writeBigUInt64BE(BigInt(1536 + tableSize), 592)
  vhdChecksum(header, 36)
  const table = Buffer.alloc(tableSize, 0xff)
  const places = new Places(file)
  let end = 1536 + tableSize + sector
  for (const [index, block] of blocksOf(changes, vhdBlock)) {
    table.writeUInt32BE(end / sector, index * 4)
    const bitmap = Buffer.alloc(sector)
    for (const at of block.sectors) bitmap.writeUInt8(bitmap.readUInt8(at >> 3) | (0x80 >> (at & 7)), at >> 3)
    places.write(bitmap, end)
    places.write(block.data, end + sector)
    end += sector + vhdBlock
  }
  for (const [bytes, at] of [
    [footer, 0],
    [header, 512],
    [table, 1536],
    [locator, 1536 + tableSize],
    [footer, end],
  ] as const)
    places.write(bytes, at)
  places.close()
}

const crcTable = Array.from({ length: 256 }, (_, index) => {
  let value = index
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0x82f63b78 : value >>> 1
  return value >>> 0
})

/** CRC-32C at byte 4 of a structure of VHDX. */
function vhdxChecksum(bytes: Buffer): void {
  bytes.writeUInt32LE(0, 4)
  let crc = 0xffffffff
  for (const byte of bytes) crc = ((crcTable[(crc ^ byte) & 0xff] ?? 0) ^ (crc >>> 8)) >>> 0
  bytes.writeUInt32LE(~crc >>> 0, 4)
}

function guid(text: string): Buffer {
  const bytes = Buffer.from(text.replaceAll('-', ''), 'hex')
  return Buffer.concat([
    bytes.subarray(0, 4).reverse(),
    bytes.subarray(4, 6).reverse(),
    bytes.subarray(6, 8).reverse(),
    bytes.subarray(8),
  ])
}

function guidText(bytes: Buffer): string {
  const part = (from: number, to: number) => Buffer.from(bytes.subarray(from, to))
  const numbers = [part(0, 4).reverse(), part(4, 6).reverse(), part(6, 8).reverse(), part(8, 10), part(10, 16)]
  return numbers.map((number) => number.toString('hex')).join('-')
}

/** The identifier of the state of a VHDX file's data, from its current header. */
function dataWriteGuid(file: string): Buffer {
  const headers = [64 << 10, 128 << 10].map((at) => readAt(file, at, 4096))
  const current = headers
    .filter((header) => header.toString('latin1', 0, 4) === 'head')
    .sort((a, b) => Number(b.readBigUInt64LE(8) - a.readBigUInt64LE(8)))[0]
  if (!current) throw new Error(`${file} has no header`)
  return current.subarray(32, 48)
}

function metadata(size: number, parent: string): Buffer {
  const items = Buffer.alloc(4096)
  items.writeUInt32LE(mib, 0)
  items.writeUInt32LE(2, 4)
  items.writeBigUInt64LE(BigInt(size), 8)
  items.writeUInt32LE(sector, 16)
  items.writeUInt32LE(sector, 20)
  items.fill(0x5a, 24, 40)
  const pairs = [
    ['parent_linkage', `{${guidText(dataWriteGuid(parent))}}`],
    ['relative_path', `.\\${path.basename(parent)}`],
    // The one that libvhdi takes.
    ['absolute_win32_path', `D:\\store\\${path.basename(parent)}`],
  ]
  guid('b04aefb7-d19e-4a81-b789-25b8e9445913').copy(items, 64)
  items.writeUInt16LE(pairs.length, 64 + 18)
  let at = 20 + pairs.length * 12
  pairs.forEach((pair, index) => {
    pair.forEach((text, which) => {
      const encoded = Buffer.from(text, 'utf16le')
      items.writeUInt32LE(at, 64 + 20 + index * 12 + which * 4)
      items.writeUInt16LE(encoded.length, 64 + 20 + index * 12 + 8 + which * 2)
      encoded.copy(items, 64 + at)
      at += encoded.length
    })
  })
  const table = Buffer.alloc(64 << 10)
  table.write('metadata')
  const entries: [string, number, number, number][] = [
    ['caa16737-fa36-4d43-b3b6-33f0aa44e76b', 0, 8, 4],
    ['2fa54224-cd1b-4876-b211-5dbed83bf4b8', 8, 8, 6],
    ['8141bf1d-a96f-4709-ba47-f233a8faab5f', 16, 4, 6],
    ['cda348c7-445d-4471-9cc9-e9885251c556', 20, 4, 6],
    ['beca12ab-b2e6-4523-93ef-c309e000c746', 24, 16, 6],
    ['a8d35f2d-b30b-454d-abf7-d3d84834ab0c', 64, at, 4],
  ]
  table.writeUInt16LE(entries.length, 10)
  entries.forEach(([id, offset, length, flags], index) => {
    const entry = 32 + index * 32
    guid(id).copy(table, entry)
    table.writeUInt32LE((64 << 10) + offset, entry + 16)
    table.writeUInt32LE(length, entry + 20)
    table.writeUInt32LE(flags, entry + 24)
  })
  return Buffer.concat([table, items])
}

function vhdxHeader(sequence: number, id: number): Buffer {
  const header = Buffer.alloc(4096)
  header.write('head')
  header.writeBigUInt64LE(BigInt(sequence), 8)
  header.fill(id, 16, 48)
  header.writeUInt16LE(1, 66)
  header.writeUInt32LE(mib, 68)
  header.writeBigUInt64LE(BigInt(mib), 72)
  vhdxChecksum(header)
  return header
}

function regionTable(): Buffer {
  const table = Buffer.alloc(64 << 10)
  table.write('regi')
  table.writeUInt32LE(2, 8)
  const regions: [string, number][] = [
    ['2dc27766-f623-4200-9d64-115e9bfd4a08', 3 * mib],
    ['8b7ca206-4790-4b9a-b8fe-575f050f886e', 2 * mib],
  ]
  regions.forEach(([id, at], index) => {
    guid(id).copy(table, 16 + index * 32)
    table.writeBigUInt64LE(BigInt(at), 32 + index * 32)
    table.writeUInt32LE(mib, 40 + index * 32)
    table.writeUInt32LE(1, 44 + index * 32)
  })
  vhdxChecksum(table)
  return table
}

/** Makes a differencing VHDX of another VHDX of `size` bytes, at most 4 GiB, which QEMU cannot. */
export function writeVhdxDifference(file: string, parent: string, size: number, id: number, changes: Change[]): void {
  const chunkRatio = 4096
  const table = Buffer.alloc(mib)
  const bitmap = Buffer.alloc(mib)
  table.writeBigUInt64LE(BigInt(4 * mib + 6), chunkRatio * 8)
  const places = new Places(file)
  let end = 5 * mib
  for (const [index, block] of blocksOf(changes, mib)) {
    const isWhole = block.sectors.size === mib / sector
    table.writeBigUInt64LE(BigInt(end + (isWhole ? 6 : 7)), index * 8)
    for (const at of block.sectors) {
      const bit = index * (mib / sector) + at
      bitmap.writeUInt8(bitmap.readUInt8(bit >> 3) | (1 << (bit & 7)), bit >> 3)
    }
    places.write(block.data, end)
    end += mib
  }
  const identifier = Buffer.alloc(64 << 10)
  identifier.write('vhdxfile')
  const regions = regionTable()
  for (const [bytes, at] of [
    [identifier, 0],
    [vhdxHeader(1, id), 64 << 10],
    [vhdxHeader(2, id), 128 << 10],
    [regions, 192 << 10],
    [regions, 256 << 10],
    [metadata(size, parent), 2 * mib],
    [table, 3 * mib],
    [bitmap, 4 * mib],
  ] as const)
    places.write(bytes, at)
  places.close()
}
