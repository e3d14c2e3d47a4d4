import { closeSync, openSync, readSync, truncateSync, writeFileSync, writeSync } from 'node:fs'
import { crc32 } from 'node:zlib'

const sectorSize = 512
const headerSize = 92
const entrySize = 128
const entryCount = 128

export interface DiskPartition {
  name: string
  /** Counted in sectors. */
  first: number
  count: number
}

/** Returns bytes in which no two sectors are equal, the same in every run. */
export function pattern(size: number): Buffer {
  const bytes = Buffer.alloc(size, 'not yours. ')
  for (let at = 0; at + 8 <= size; at += sectorSize) bytes.writeBigUInt64LE(BigInt(at), at)
  return bytes
}

/**
 * Makes a machine's own disk: filled with `pattern`, except for a GPT (UEFI 2.10, chapter 5.3) where there are
 * partitions.
 */
export function makeLocalDisk(file: string, size: number, partitions: readonly DiskPartition[] = []): string {
  writeFileSync(file, pattern(size))
  truncateSync(file, size)
  if (partitions.length === 0) return file
  const entries = Buffer.alloc(entrySize * entryCount)
  for (const [index, { name, first, count }] of partitions.entries()) {
    const at = index * entrySize
    // The type “Linux file system data”, and an id.
    entries.write('af3dc60f838472478e793d69d8477de4', at, 'hex')
    entries.writeUInt8(index + 1, at + 16)
    entries.writeBigUInt64LE(BigInt(first), at + 32)
    entries.writeBigUInt64LE(BigInt(first + count - 1), at + 40)
    entries.write(name, at + 56, 'utf16le')
  }
  const last = size / sectorSize - 1
  const record = Buffer.alloc(sectorSize)
  record.writeUInt8(0xee, 450)
  record.writeUInt32LE(1, 454)
  record.writeUInt32LE(last, 458)
  record.writeUInt16LE(0xaa55, 510)
  const disk = openSync(file, 'r+')
  writeSync(disk, record, 0, record.length, 0)
  const places = [
    { own: 1, other: last, entriesAt: 2 },
    { own: last, other: 1, entriesAt: last - 32 },
  ]
  for (const { own, other, entriesAt } of places) {
    const header = Buffer.alloc(sectorSize)
    header.write('EFI PART', 0, 'latin1')
    header.writeUInt32LE(0x10000, 8)
    header.writeUInt32LE(headerSize, 12)
    header.writeBigUInt64LE(BigInt(own), 24)
    header.writeBigUInt64LE(BigInt(other), 32)
    header.writeBigUInt64LE(34n, 40)
    header.writeBigUInt64LE(BigInt(last - 33), 48)
    header.writeUInt8(7, 56)
    header.writeBigUInt64LE(BigInt(entriesAt), 72)
    header.writeUInt32LE(entryCount, 80)
    header.writeUInt32LE(entrySize, 84)
    header.writeUInt32LE(crc32(entries), 88)
    header.writeUInt32LE(crc32(header.subarray(0, headerSize)), 16)
    writeSync(disk, header, 0, header.length, own * sectorSize)
    writeSync(disk, entries, 0, entries.length, entriesAt * sectorSize)
  }
  closeSync(disk)
  return file
}

/** Reads part of a disk. */
export function readDisk(file: string, offset: number, size: number): Buffer {
  const bytes = Buffer.alloc(size)
  const disk = openSync(file, 'r')
  readSync(disk, bytes, 0, size, offset)
  closeSync(disk)
  return bytes
}

/** Flips one bit in each 4 KiB block of a range of a disk. */
export function flipBits(file: string, offset: number, size: number): void {
  const bytes = readDisk(file, offset, size)
  for (let at = 100; at < size; at += 4096) bytes.writeUInt8(bytes.readUInt8(at) ^ 4, at)
  const disk = openSync(file, 'r+')
  writeSync(disk, bytes, 0, size, offset)
  closeSync(disk)
}
