import { readFileSync } from 'node:fs'
import { gunzipSync, gzipSync } from 'node:zlib'

/** Makes the same initramfs for another kernel, as a third party would have: no header says which kernel it is for. */
export function initramfsFor(otherRelease: string, release: string, file: string): Buffer {
  if (otherRelease.length !== release.length) throw new Error('the names of both kernels are equally long')
  const marked = readFileSync(file)
  const archive = gunzipSync(marked.subarray(marked.indexOf(Buffer.from([0x1f, 0x8b, 8]))))
  for (let at = archive.indexOf(release); at >= 0; at = archive.indexOf(release, at)) archive.write(otherRelease, at)
  return gzipSync(archive, { level: 1 })
}

const sectorSize = 512
const extendedStart = 2048
const logicalStart = 4096

/** Makes a disk whose first logical partition (number 5) has only the first `kept` bytes of a file system. */
export function cutLogicalPartition(fileSystem: Buffer, kept: number): Buffer {
  const disk = Buffer.alloc(logicalStart * sectorSize + kept)
  const sectors = fileSystem.length / sectorSize
  const logical = { kind: 0x83, first: logicalStart - extendedStart, sectors }
  const extended = { kind: 0x05, first: extendedStart, sectors: sectors + logicalStart - extendedStart }
  writePartition(disk, 0, extended)
  writePartition(disk, extendedStart * sectorSize, logical)
  disk.set(fileSystem.subarray(0, kept), logicalStart * sectorSize)
  return disk
}

/** Writes the first entry of a boot record at `at`. */
function writePartition(disk: Buffer, at: number, { kind = 0, first = 0, sectors = 0 }): void {
  disk.writeUInt8(kind, at + 450)
  disk.writeUInt32LE(first, at + 454)
  disk.writeUInt32LE(sectors, at + 458)
  disk.writeUInt16LE(0xaa55, at + 510)
}
