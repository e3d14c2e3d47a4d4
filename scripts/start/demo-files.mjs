import { createHash } from 'node:crypto'
import {
  closeSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import path from 'node:path'

/** Sizes of a small Linux: what a device downloads before its stream begins. */
const bootProgramSize = 70 * 1024
const kernelSize = 8 * 1024 * 1024
const initrdSize = 6 * 1024 * 1024
const kernelMagic = 'HdrS'
const kernelMagicOffset = 0x202
export const demoDiskSize = 419_430_400

/**
 * Makes the demo vDisk's files below `store`, once. The disk has bytes only where the recorded boot reads, so it takes
 * 25 MB.
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
  onceWritten(path.join(version, 'kernel'), writeKernel, isKernel)
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

/**
 * Writes beside and renames, so that an interrupted start leaves no half file. `isCurrent` tells a file of an earlier
 * release.
 */
function onceWritten(file, write, isCurrent = () => true) {
  if (existsSync(file) && isCurrent(file)) return
  const fd = openSync(`${file}.part`, 'w', 0o644)
  write(fd)
  closeSync(fd)
  renameSync(`${file}.part`, file)
}

function writeFiller(fd, what, size) {
  writeFileSync(fd, filler(`Bootfarm simulated ${what}; for bootfarm-sim only, no machine runs it. `, size))
}

/**
 * A kernel as far as its header goes: the edge refuses what is none. For 64-bit x86, as
 * https://docs.kernel.org/arch/x86/boot.html has it: one sector of set-up code, then the system in units of 16 bytes.
 */
function writeKernel(fd) {
  const kernel = filler('kernel', kernelSize)
  kernel.fill(0, 0, 1024)
  kernel.writeUInt8(1, 0x1f1)
  kernel.writeUInt32LE((kernelSize - 1024) / 16, 0x1f4)
  kernel.write(kernelMagic, kernelMagicOffset)
  kernel.writeUInt16LE(0x020f, 0x206)
  kernel.writeUInt16LE(0x100, 0x20e)
  kernel.writeUInt16LE(1, 0x236)
  kernel.write('1.0-simulated (for bootfarm-sim only, no machine runs it) #1\0', 0x300)
  writeFileSync(fd, kernel)
}

function isKernel(file) {
  const magic = Buffer.alloc(kernelMagic.length)
  const fd = openSync(file, 'r')
  readSync(fd, magic, 0, magic.length, kernelMagicOffset)
  closeSync(fd)
  return magic.toString('latin1') === kernelMagic
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
