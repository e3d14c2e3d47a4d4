import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, realpathSync, rmdirSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { UserError } from '../../lib/fail.mjs'
import { edgeProgram } from '../../lib/paths.mjs'
import { importDisk } from '../stream/servers.mjs'
import { runToEnd } from '../vdisk/run.mjs'

/** As a rotating disk with 7,200 revolutions a minute: about 150 places a second, and its speed in one place. */
export const slowDisk = { readsPerSecond: 150, mbPerSecond: 150 }
const [blkio, unified] = ['/sys/fs/cgroup/blkio', '/sys/fs/cgroup']

/** Where the edges of the boots have their stores: on the local disk, in memory, and on the same disk made slow. */
export class Storages {
  #scratch
  #stores = new Map()
  #isMounted = false
  #group = path.join(existsSync(blkio) ? blkio : unified, `bootfarm-bench-${process.pid}`)

  /** @param {string} scratch on the local disk */
  constructor(scratch) {
    this.#scratch = scratch
  }

  /**
   * Returns the store of an image, imported at the first call.
   * @param {{ storage: string, answers: string }} setting
   * @param {string} image
   * @returns {Promise<{ store: string, version: string }>}
   */
  async of({ storage, answers }, image) {
    const isPacked = answers === 'packed'
    const place = storage === 'tmpfs' ? this.#memory() : this.#scratch
    const key = `${place} ${isPacked} ${image}`
    if (!this.#stores.has(key)) {
      const made = await importDisk(edgeProgram, image, place)
      if (isPacked) await runToEnd(edgeProgram, ['vdisk', 'compress', '--store', made.store])
      this.#stores.set(key, made)
    }
    return this.#stores.get(key)
  }

  #memory() {
    const place = path.join(this.#scratch, 'memory')
    if (this.#isMounted) return place
    mkdirSync(place)
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4g', 'bootfarm-bench', place])
    this.#isMounted = true
    return place
  }

  /** Limits what this process reads from the local disk from now on (cgroups(7), controller blkio or io). */
  slowDown(pid) {
    if (!existsSync(this.#group)) this.#makeGroup()
    writeFileSync(path.join(this.#group, 'cgroup.procs'), String(pid))
  }

  #makeGroup() {
    const device = diskOf(this.#scratch)
    const bytes = slowDisk.mbPerSecond * 1e6
    const limits = existsSync(blkio)
      ? [
          ['blkio.throttle.read_iops_device', `${device} ${slowDisk.readsPerSecond}`],
          ['blkio.throttle.read_bps_device', `${device} ${bytes}`],
        ]
      : [['io.max', `${device} riops=${slowDisk.readsPerSecond} rbps=${bytes}`]]
    try {
      if (!existsSync(blkio)) writeFileSync(path.join(unified, 'cgroup.subtree_control'), '+io')
      mkdirSync(this.#group)
      for (const [file, text] of limits) writeFileSync(path.join(this.#group, file), text)
    } catch (error) {
      throw new UserError(
        `the slow disk needs a control group that limits reads of ${device}, which this kernel refuses: ${error.message}.`,
      )
    }
  }

  /** After the last edge has ended. */
  remove() {
    if (existsSync(this.#group)) rmdirSync(this.#group)
    if (this.#isMounted) execFileSync('umount', [path.join(this.#scratch, 'memory')])
  }
}

/** Returns the numbers of the whole disk that a directory is on, as `8:0`. */
function diskOf(directory) {
  const { dev } = statSync(directory)
  const numbers = `${(dev >> 8) & 0xfff}:${(dev & 0xff) | ((dev >> 12) & 0xfff00)}`
  const link = `/sys/dev/block/${numbers}`
  if (!existsSync(link))
    throw new UserError(`the slow disk needs ${directory} on a disk of its own; ${numbers} is none. Set TMPDIR.`)
  const place = realpathSync(link)
  const isPartition = existsSync(path.join(place, 'partition'))
  return readFileSync(path.join(isPartition ? path.dirname(place) : place, 'dev'), 'utf8').trim()
}
