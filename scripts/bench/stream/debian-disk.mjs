import { closeSync, existsSync, openSync, readFileSync, readSync, renameSync, writeFileSync, writeSync } from 'node:fs'
import path from 'node:path'
import { UserError } from '../../lib/fail.mjs'
import { ensureSystemRoot } from '../../lib/machines/system-root.mjs'
import { step } from '../../lib/progress.mjs'
import { WatchedProcess } from '../watched-process.mjs'

const blockSize = 4096
const unitSize = 32 << 10
const mib = 1 << 20
/** Of one read of a device (STREAM.md): a kernel with a local disk asks for more at once. */
const readSizeMax = 128 << 10
/** Before it lie the superblocks by which file systems are recognised; what is left of them is no whole file system. */
const firstDenseUnit = mib / unitSize
/** 128 MiB: several times what one system reads at its boot. */
const denseUnitsMax = 4096
/** Emulated, as all machines of tests: several times what it takes. */
const bootLimitMs = 300_000

/**
 * @typedef {object} DebianDisk
 * @property {string} disk a Debian on a disk image
 * @property {string} trace what it reads at its boot, without blocks of zeros
 * @property {string} dense a file of its units that have no block of zeros
 * @property {number} denseMib
 */

/**
 * A disk of real content: the Debian that machines boot in tests, a recording of its boot, and its bytes without zeros.
 * @param {string} scratch a directory for large files
 * @returns {Promise<DebianDisk>}
 */
export async function debianDisk(scratch) {
  const root = await ensureSystemRoot('virtual')
  if ('missing' in root) throw new UserError(`there is no Debian to measure with: ${root.missing}.`)
  const trace = path.join(path.dirname(root.image), 'boot-trace.csv')
  if (!existsSync(trace))
    await step('Recording what a Debian reads at its boot, once', () => record(root, trace, scratch))
  const dense = path.join(scratch, 'dense.raw')
  const denseMib = await step('Writing its bytes without zeros', () => writeDense(root.image, dense))
  return { disk: root.image, trace, dense, denseMib }
}

/** Boots the system from a disk whose reads nbdkit writes down, up to its login. */
async function record(root, trace, scratch) {
  const log = path.join(scratch, 'reads.log')
  const socket = path.join(scratch, 'nbd.socket')
  const plugin = ['--filter=log', '--filter=cow', 'file', root.image, `logfile=${log}`]
  const server = new WatchedProcess({
    command: '/usr/bin/nbdkit',
    args: ['--foreground', '--unix', socket, '--threads', '1', ...plugin],
  })
  const machine = new WatchedProcess(machineOf(root, socket))
  try {
    await machine.waitFor(/login:/, bootLimitMs)
  } finally {
    await machine.stop()
    await server.stop()
  }
  const rows = rowsOf(readFileSync(log, 'utf8'), contentOf(root.image))
  if (rows.length < 100) throw new UserError(`a boot of ${rows.length} reads was recorded; see ${log}.`)
  writeFileSync(`${trace}.part`, `time_ms,offset,length\n${rows.join('\n')}\n`)
  renameSync(`${trace}.part`, trace)
}

function machineOf({ vmlinuz, initrd }, socket) {
  const machine = [
    '-accel',
    'tcg',
    '-cpu',
    'max',
    '-smp',
    '1',
    '-m',
    '1024',
    '-nodefaults',
    '-display',
    'none',
    '-no-reboot',
  ]
  const system = [
    '-kernel',
    vmlinuz,
    '-initrd',
    initrd,
    '-append',
    'root=/dev/vda rw console=ttyS0 fstab=no systemd.mask=networking.service',
  ]
  const disk = ['-drive', `if=virtio,format=raw,file=nbd:unix:${socket}`]
  const console = ['-chardev', 'stdio,id=c0,signal=off', '-serial', 'chardev:c0']
  const args = [machine, system, disk, console].flat()
  return { command: 'qemu-system-x86_64', args }
}

/** Of each read what is not zeros, in whole blocks. */
function rowsOf(log, isZeros) {
  const rows = []
  let firstMs
  for (const line of log.split('\n')) {
    const found = line.match(/^\S+ (\d+):(\d+):(\d+)\.(\d+) .* Read .*offset=(0x[0-9a-f]+) count=(0x[0-9a-f]+)/)
    if (!found) continue
    const [, hours, minutes, seconds, fraction, offsetText, countText] = found
    const ms = ((Number(hours) * 60 + Number(minutes)) * 60 + Number(`${seconds}.${fraction}`)) * 1000
    firstMs ??= ms
    const end = Number(offsetText) + Number(countText)
    let begin
    for (let at = Number(offsetText); at <= end; at += blockSize) {
      const isWanted = at < end && !isZeros(at)
      const isFull = begin !== undefined && at - begin === readSizeMax
      if (begin !== undefined && (!isWanted || isFull)) {
        rows.push(`${(ms - firstMs).toFixed(3)},${begin},${Math.min(at, end) - begin}`)
        begin = undefined
      }
      if (isWanted) begin ??= at
    }
  }
  return rows
}

/** Returns a function that says whether the block at an offset is zeros. */
function contentOf(image) {
  const file = openSync(image, 'r')
  const block = Buffer.alloc(blockSize)
  const zeros = Buffer.alloc(blockSize)
  return (offset) => {
    const size = readSync(file, block, 0, blockSize, offset - (offset % blockSize))
    return block.subarray(0, size).equals(zeros.subarray(0, size))
  }
}

/** Writes units without blocks of zeros, from all over the disk; returns their MiB. */
function writeDense(image, dense) {
  const from = openSync(image, 'r')
  const to = openSync(dense, 'w')
  try {
    const units = denseUnits(from)
    const count = Math.min(denseUnitsMax, units.length - (units.length % (mib / unitSize)))
    const unit = Buffer.alloc(unitSize)
    for (let index = 0; index < count; index++) {
      readSync(from, unit, 0, unitSize, units[Math.floor((index * units.length) / count)] * unitSize)
      writeSync(to, unit, 0, unitSize, index * unitSize)
    }
    return (count * unitSize) / mib
  } finally {
    closeSync(from)
    closeSync(to)
  }
}

function denseUnits(file) {
  const unit = Buffer.alloc(unitSize)
  const zeros = Buffer.alloc(blockSize)
  const units = []
  for (let index = firstDenseUnit; readSync(file, unit, 0, unitSize, index * unitSize) === unitSize; index++) {
    let isDense = true
    for (let at = 0; at < unitSize; at += blockSize) isDense &&= !unit.subarray(at, at + blockSize).equals(zeros)
    if (isDense) units.push(index)
  }
  return units
}
