import { UserError } from '../../lib/fail.mjs'
import { edgeProgram } from '../../lib/paths.mjs'
import { say } from '../../lib/progress.mjs'
import { withServer } from '../stream/load.mjs'
import { port } from '../stream/ports.mjs'
import { bootsAlike, learned, readAheadMib, replayOnce } from '../stream/replays.mjs'
import { bootScriptPort, startLimitMs } from '../stream/servers.mjs'
import { dropPageCache } from '../vdisk/imports.mjs'
import { WatchedProcess } from '../watched-process.mjs'
import { readSizeOf } from './settings.mjs'
import { drawsOf, shuffled } from './statistics.mjs'

/** A round trip on a LAN with a switch, beside the line's time for the bytes. */
export const link = { ...port, roundTripUs: 200 }
/** Headers of IP and UDP. */
const overheadSize = 28
const reportLimitMs = 5_000
/** Fills the caches: how it asks does not matter. */
const quickly = ['--depth', '16']

/** The link from the edge to the devices, replaced when the packet size changes. */
export class Way {
  #cable
  #far
  #mtu

  /** @param {import('../stream/cable.mjs').Cable} cable */
  constructor(cable) {
    this.#cable = cable
  }

  /** @param {string} mtu */
  async set(mtu) {
    if (this.#mtu === mtu) return
    await this.remove()
    this.#cable.set('S', Number(mtu))
    this.#far = await this.#cable.behindFarPort({ ...link, mtu: Number(mtu) })
    this.#mtu = mtu
  }

  async remove() {
    this.#mtu = undefined
    await this.#far?.stop()
    this.#far = undefined
  }
}

/**
 * @typedef {object} FieldLab
 * @property {import('../stream/load.mjs').Site} site
 * @property {Way} way
 * @property {import('./storages.mjs').Storages} storages
 * @property {string} trace CSV file of the reads of a boot
 * @property {{ next: number }} devices each boot is of another device, so that none waits for the one before
 *
 * @typedef {object} MeasuredBoot
 * @property {number} seconds from the open session to the last byte; of several devices, the mean
 * @property {number} reads that the device made, and below their bytes and microseconds, all summed up
 * @property {number} bytes
 * @property {number} bytesIn of received packets, without the headers of IP and UDP
 * @property {number} packetsIn
 * @property {number} fetchUs as the device sees its reads
 * @property {number} storageUs until the edge had the bytes
 * @property {number} coldReads reads for which it waited for a disk
 * @property {number} sendUs until the kernel had the packets
 * @property {number} wireUs what is left of `fetchUs`: the network in both directions
 * @property {number} missingFragments that were requested again
 * @property {number} unexpectedFragments that arrived twice
 */

/**
 * Measures each cell so many times, in rounds of all cells, each round in another random order.
 * @param {FieldLab} lab
 * @param {import('./settings.mjs').Cell[]} cells
 * @param {{ repeat: number, seed: number, name: string }} how
 * @returns {Promise<({ cell: string, round: number } & MeasuredBoot)[]>}
 */
export async function measureCells(lab, cells, { repeat, seed, name }) {
  const below = drawsOf(seed)
  const measured = []
  for (let round = 1; round <= repeat; round++) {
    for (const { name: cell, setting } of shuffled(cells, below))
      measured.push({ cell, round, ...(await measureBoot(lab, setting)) })
    say(`${name}: round ${round} of ${repeat}`)
  }
  return measured
}

/** Boots once from an edge that was started for it. */
async function measureBoot(lab, setting) {
  await lab.way.set(setting.mtu)
  const peer = await peerOf(lab, setting)
  if (setting.cache === 'warm')
    return withServer(lab.site, peer, async (edge) => {
      await warmUp(lab, peer, setting)
      return bootAll(lab, { edge, peer, setting })
    })
  if (learns(setting)) await withServer(lab.site, peer, () => warmUp(lab, peer, setting))
  dropPageCache()
  return withServer(lab.site, peer, (edge) => bootAll(lab, { edge, peer, setting }))
}

const learns = ({ readAhead, answers }) => readAhead === 'on' || answers === 'packed'

/** Boots until the edge has the disk in memory and, if the setting wants them, a profile and packed answers. */
function warmUp(lab, peer, setting) {
  if (!learns(setting)) return boot(lab, peer, [...commonOf(lab, setting), ...quickly])
  const replay = (args) => boot(lab, peer, [...commonOf(lab, setting), ...args])
  return learned(replay, setting.answers === 'packed' ? bootsAlike : 1)
}

async function bootAll(lab, { edge, peer, setting }) {
  const args = [...commonOf(lab, setting), '--depth', setting.inFlight, '--piece', String(readSizeOf(setting))]
  if (setting.readAhead === 'on') args.push('--read-ahead-mib', String(readAheadMib))
  const boots = await Promise.all(
    Array.from({ length: Number(setting.devices) }, async () => {
      const found = await boot(lab, peer, args)
      return { ...found, ...timesOf(await reportOf(edge, found.mac)) }
    }),
  )
  const names = Object.keys(boots[0]).filter((name) => typeof boots[0][name] === 'number')
  const mean = (name) => boots.reduce((sum, one) => sum + one[name], 0) / boots.length
  return Object.fromEntries(names.map((name) => [name, mean(name)]))
}

async function boot(lab, peer, args) {
  const number = lab.devices.next++
  const mac = `02:bf:00:02:${hexByte(number >> 8)}:${hexByte(number & 0xff)}`
  return { mac, ...(await replayOnce(lab.site, peer, [...args, '--mac', mac])) }
}

const hexByte = (value) => value.toString(16).padStart(2, '0')

const commonOf = (lab, { mtu, answers }) => [
  '--trace',
  lab.trace,
  '--packet-size-max',
  String(Number(mtu) - overheadSize),
  '--codec',
  answers === 'packed' ? 'lz4' : 'off',
]

async function peerOf(lab, setting) {
  const { store, version } = await lab.storages.of(setting, lab.site.image)
  const isClear = setting.encryption === 'off'
  const start = async (cable) => {
    const options = ['--json', '--listen', cable.serverIp, '--dhcp', 'off', '--trust-mac-from', cable.clientNetwork]
    const disk = ['--store', store, '--version', version, '--boot-profile', learns(setting) ? 'on' : 'off']
    const more = ['--stream-shards', setting.shards, ...(isClear ? ['--clear'] : [])]
    const edge = new WatchedProcess(cable.onServer(edgeProgram, ['serve', ...options, ...disk, ...more]))
    await edge.waitFor(/serving on/, startLimitMs)
    if (setting.storage === 'slow') lab.storages.slowDown(edge.pid)
    return edge
  }
  return { by: 'bootfarm', way: 'stream', cipher: isClear ? 'clear' : 'encrypted', port: bootScriptPort, start }
}

/** Waits for the edge's report of a boot that is ready. */
async function reportOf(edge, mac) {
  const limit = performance.now() + reportLimitMs
  while (performance.now() < limit) {
    const lines = edge.output.split('\n').filter((line) => line.startsWith('{"id"') && line.endsWith('}'))
    const reports = lines.map((line) => JSON.parse(line))
    const found = reports.findLast((one) => one.mac === mac && one.outcome?.kind === 'ready')
    if (found) return found
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  throw new UserError(`the edge reported no boot of ${mac}; its output ends with:\n${edge.output.slice(-3000)}`)
}

/** Sums of the times of all reads, from the edge's report (UPLINK.md, `readTimes`). */
function timesOf({ readTimes = {} }) {
  const { warm, cold, send, wire } = readTimes
  return {
    storageUs: (warm?.sumUs ?? 0) + (cold?.sumUs ?? 0),
    coldReads: cold?.counts.reduce((sum, count) => sum + count, 0) ?? 0,
    sendUs: send?.sumUs ?? 0,
    wireUs: wire?.sumUs ?? 0,
  }
}
