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
import { inRoot } from '../lib/paths.mjs'
import { step } from '../lib/progress.mjs'
import { must } from '../lib/run.mjs'
import { answers } from './ports.mjs'
import { ensureStore } from './site-edge.mjs'

const edgeAddress = '127.0.0.1'
const leases = '127.77.0.10-127.77.0.250'
const deviceCount = 6
/** Simulated devices that are not registered. */
const strangerCount = 2
const firstStrangerMac = '02:bf:00:00:01:01'
const historyDays = 30

/** The site that every start has: an edge on loopback, and simulated devices. */
export class DemoSite {
  static processNames = ['edge', 'devices', 'strangers']
  #options
  #programs
  #data
  #trace = inRoot('e2e/traces/boot-trace-bios.csv')
  #files

  /** @param {{ edge: string, sim: string }} programs */
  constructor(options, programs) {
    this.#options = options
    this.#programs = programs
    this.#data = path.join(options.data, 'edge')
    this.#files = makeDemoFiles(path.join(this.#data, 'store'), this.#trace)
  }

  async start(processes, joinToken) {
    if (!existsSync(path.join(this.#data, 'identity.json'))) await this.#enrol(joinToken)
    await ensureStore(this.#programs.edge, this.#data)
    await step('Starting the edge', () => processes.start(this.#edge()))
    await step(`Starting ${deviceCount} simulated devices`, () => processes.start(this.#devices()))
    await step(`Starting ${strangerCount} unregistered devices`, () => processes.start(this.#strangers()))
  }

  async #enrol(joinToken) {
    const url = `http://127.0.0.1:${this.#options.apiPort}`
    const enrolment = ['enrol', '--url', url, '--token', joinToken, '--data', this.#data]
    await step('Enrolling the edge with its join token', () =>
      must('Enrolling the edge', this.#programs.edge, enrolment),
    )
    const history = ['history', '--data', this.#data, '--days', String(historyDays), '--seed', '1']
    await step(`Making ${historyDays} days of demo history`, () =>
      must('Making demo history', this.#programs.sim, history),
    )
  }

  #edge() {
    const { edgePorts } = this.#options
    const ports = ['dhcp', 'pxe', 'tftp', 'http', 'stream', 'peer']
    const args = ['serve', '--data', this.#data, '--listen', edgeAddress, '--boot-files', this.#files.bootFiles]
    args.push('--dhcp', 'server', '--dhcp-pool', leases, '--wol-target', `${edgeAddress}:${edgePorts.wol}`)
    // Whatever runs on this machine may speak for a simulated device.
    args.push('--trust-mac-from', '127.0.0.0/8')
    for (const port of ports) args.push(`--${port}-port`, String(edgePorts[port]))
    const ready = () => answers(`http://${edgeAddress}:${edgePorts.http}/healthz`)
    return { name: 'edge', command: this.#programs.edge, args, ready }
  }

  #devices() {
    // Memory for experiments with read-ahead; without them boots are as they always were.
    const memory = ['--read-ahead-mib', '32', '--read-ahead-if-told']
    return this.#simulated('devices', deviceCount, 3, ['--wol-port', String(this.#options.edgePorts.wol), ...memory])
  }

  #strangers() {
    return this.#simulated('strangers', strangerCount, strangerCount, ['--first-mac', firstStrangerMac])
  }

  #simulated(name, count, waveSize, further) {
    const { edgePorts, waveIntervalSeconds } = this.#options
    const args = ['boot', '--server', edgeAddress, '--devices', String(count), ...further]
    args.push('--dhcp-port', String(edgePorts.dhcp), '--tftp-port', String(edgePorts.tftp))
    // Devices may be given imported vDisks: of these there is no file to compare with.
    args.push('--trace', this.#trace, '--verify', this.#files.disk, '--other-disks')
    args.push('--waves', '--wave-size', String(waveSize), '--wave-interval-s', String(waveIntervalSeconds))
    return { name, command: this.#programs.sim, args, ready: async () => true }
  }
}

/** Sizes of a small Linux: what a device downloads before its stream begins. */
const bootProgramSize = 70 * 1024
const kernelSize = 8 * 1024 * 1024
const initrdSize = 6 * 1024 * 1024
const kernelMagic = 'HdrS'
const kernelMagicOffset = 0x202
const demoDiskSize = 419_430_400

/**
 * Makes the demo vDisk's files below `store`, once. The disk has bytes only where the recorded boot reads, so it takes
 * 25 MB.
 * @param {string} trace CSV with `time_ms,offset,length` and a header
 * @returns {{ bootFiles: string, disk: string }}
 */
function makeDemoFiles(store, trace) {
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
