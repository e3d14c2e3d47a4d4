import { createHash } from 'node:crypto'
import {
  closeSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import path from 'node:path'

/** Sizes of a small Linux: what a device downloads before its stream begins. */
const bootProgramSize = 70 * 1024
const kernelSize = 8 * 1024 * 1024
const initrdSize = 6 * 1024 * 1024
export const demoDiskSize = 419_430_400

/**
 * Makes the demo vDisk's files below `store`, once. The disk has bytes only where the recorded boot reads, so it takes 25 MB.
 * @param {string} trace CSV with `time_ms,offset,length` and a header
 * @returns {{ bootFiles: string, disk: string }}
 */
export function makeDemoFiles(store, trace) {
  const bootFiles = path.join(store, 'boot-files')
  const version = path.join(store, 'demo/1')
  mkdirSync(bootFiles, { recursive: true })
  mkdirSync(version, { recursive: true })
  const disk = path.join(version, 'disk.raw')
  onceWritten(path.join(bootFiles, 'undionly.kpxe'), (fd) => writeFiller(fd, 'boot program', bootProgramSize))
  onceWritten(path.join(version, 'kernel'), (fd) => writeFiller(fd, 'kernel', kernelSize))
  onceWritten(path.join(version, 'initrd'), (fd) => writeFiller(fd, 'initramfs', initrdSize))
  onceWritten(disk, (fd) => {
    ftruncateSync(fd, demoDiskSize)
    for (const line of readFileSync(trace, 'utf8').trim().split('\n').slice(1)) {
      const [, offset, length] = line.split(',').map(Number)
      writeSync(fd, filler(`disk ${offset}`, length), 0, length, offset)
    }
  })
  return { bootFiles, disk }
}

/** Writes beside and renames, so that an interrupted start leaves no half file. */
function onceWritten(file, write) {
  if (existsSync(file)) return
  const fd = openSync(`${file}.part`, 'w', 0o644)
  write(fd)
  closeSync(fd)
  renameSync(`${file}.part`, file)
}

function writeFiller(fd, what, size) {
  writeFileSync(fd, filler(`Bootfarm simulated ${what}; for bootfarm-sim only, no machine runs it. `, size))
}

/** Bytes that depend on the label and differ in each 32-byte row, so that a mixed-up fragment shows. */
function filler(label, size) {
  const bytes = Buffer.alloc(size)
  bytes.write(label.slice(0, size))
  const seed = createHash('sha256').update(label).digest()
  for (let at = 96; at + 32 <= size; at += 32) {
    seed.copy(bytes, at)
    bytes.writeUInt32BE(at, at)
  }
  return bytes
}
