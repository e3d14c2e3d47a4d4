import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { UserError } from '../../lib/fail.mjs'
import { edgeProgram, simProgram } from '../../lib/paths.mjs'
import { secondsOfProcess } from '../../lib/processor-time.mjs'
import { WatchedProcess } from '../watched-process.mjs'
import { forget, remember } from './disks.mjs'
import { LineUse } from './line.mjs'

const pool = '10.79.16.0-10.79.31.255'
const startLimitMs = 20_000
/** Many times what the longest storm takes. */
const limitMs = 180_000
const reportLimitMs = 10_000
const pollMs = 50
const warmingMbps = 1000
const warmingMac = '02:bf:00:01:00:01'

/**
 * @typedef {object} Configuration
 * @property {string} version name of a stored version
 * @property {number} devices
 * @property {number} mbps speed of the edge's link
 * @property {number | null} startsPerSecond null: all at once
 * @property {boolean} isCold nothing is in the edge's memory
 */

/**
 * Boots simulated devices from a real edge, from DHCP to ready; every byte is compared.
 * @param {{ line: import('./line.mjs').Line, scratch: string, isStopped: boolean, bootFiles: string,
 *   versions: Map<string, import('./disks.mjs').StoredVersion> }} site
 * @param {Configuration} configuration
 */
export async function bootStorm(site, configuration) {
  if (site.isStopped) throw new UserError('the benchmark was stopped.')
  const version = site.versions.get(configuration.version)
  const data = mkdtempSync(path.join(site.scratch, 'edge-'))
  if (configuration.isCold) forget(version.store)
  else remember(version.store)
  const edge = await startEdge(site, version, data)
  try {
    if (!configuration.isCold) await warm(site, version)
    site.line.limit(configuration.mbps)
    const fleet = startFleet(site, version, configuration)
    const use = new LineUse(fleet.pid)
    const timer = setTimeout(() => void fleet.stop(), limitMs)
    await fleet.ended
    clearTimeout(timer)
    const mostBytes = use.end()
    const boots = readyBoots(fleet, configuration)
    const reports = await reportsOf(edge, boots.length)
    return { ...figures(boots, configuration, mostBytes), reports, processorSeconds: secondsOfProcess(edge.pid) }
  } finally {
    await edge.stop()
    rmSync(data, { recursive: true, force: true })
  }
}

/** Another device reads all that a boot reads, as fast as it can: the edge has verified these bytes then. */
async function warm({ line }, { trace }) {
  line.limit(warmingMbps)
  const fast = ['--first-mac', warmingMac, '--speed', '0', '--breather-ms', '0', '--trace', trace]
  const boot = ['boot', '--json', '--server', line.edgeIp, '--interface', line.devicesInterface, ...fast]
  const device = new WatchedProcess(line.onDevices(simProgram, boot))
  const timer = setTimeout(() => void device.stop(), startLimitMs)
  const code = await device.ended
  clearTimeout(timer)
  if (code !== 0) throw new UserError(`the first device did not boot:\n${device.output.slice(-2000)}`)
}

/** The edge has one processor, and learns nothing: each storm finds the same edge. */
async function startEdge({ line, bootFiles }, { store, version }, data) {
  const disk = ['--store', store, '--version', version, '--boot-files', bootFiles, '--data', data]
  const network = ['--listen', line.edgeIp, '--dhcp', 'server', '--dhcp-pool', pool]
  const serve = ['serve', '--json', '--boot-profile', 'off', ...network, ...disk]
  const edge = new WatchedProcess(line.onEdge('taskset', ['-c', '0', edgeProgram, ...serve]))
  await edge.waitFor(/serving on/, startLimitMs)
  return edge
}

function startFleet({ line }, { trace, image }, { devices, startsPerSecond }) {
  const starts = ['--devices', String(devices), '--start-within-s', String(startSeconds(devices, startsPerSecond))]
  const boot = ['boot', '--json', '--server', line.edgeIp, '--interface', line.devicesInterface, ...starts]
  const processor = String(os.cpus().length - 1)
  const args = ['-c', processor, simProgram, ...boot, '--trace', trace, '--verify', image]
  return new WatchedProcess(line.onDevices('taskset', args))
}

function readyBoots(fleet, { devices }) {
  const boots = jsonLines(fleet.output)
  const failed = boots.find(({ outcome }) => outcome !== 'ready')
  if (failed) throw new UserError(`a device of ${devices} did not boot: ${JSON.stringify(failed)}`)
  if (boots.length !== devices)
    throw new UserError(
      `${boots.length} of ${devices} devices booted in ${limitMs / 1000} s:\n${fleet.output.slice(-2000)}`,
    )
  return boots
}

/** Whole seconds. */
const startSeconds = (devices, startsPerSecond) =>
  startsPerSecond === null ? 0 : Math.round(devices / startsPerSecond)

function figures(boots, { devices, startsPerSecond, mbps }, mostBytes) {
  const intervalSeconds = startSeconds(devices, startsPerSecond) / devices
  const seconds = boots.map(({ totalUs }) => totalUs / 1e6).toSorted((a, b) => a - b)
  const at = (part) => seconds[Math.max(0, Math.ceil(seconds.length * part) - 1)]
  const ends = boots.map(({ mac, totalUs }) => indexOf(mac) * intervalSeconds + totalUs / 1e6)
  return { p50: at(0.5), p95: at(0.95), last: Math.max(...ends), linkShare: (mostBytes * 8) / (mbps * 1e6) }
}

/** Devices count up from 02:bf:00:00:00:01. */
const indexOf = (mac) => Number.parseInt(mac.replaceAll(':', '').slice(-6), 16) - 1

/** The edge prints a boot when it is over. */
async function reportsOf(edge, count) {
  const deadline = performance.now() + reportLimitMs
  for (;;) {
    const reports = new Map(
      jsonLines(edge.output)
        .filter(({ outcome, mac }) => outcome?.kind === 'ready' && mac !== warmingMac)
        .map((report) => [report.id, report]),
    )
    if (reports.size >= count) return [...reports.values()]
    if (performance.now() > deadline)
      throw new UserError(`the edge printed ${reports.size} of ${count} boots:\n${edge.output.slice(-2000)}`)
    await new Promise((resolve) => setTimeout(resolve, pollMs))
  }
}

function jsonLines(output) {
  return output
    .split('\n')
    .filter((line) => line.startsWith('{') && line.endsWith('}'))
    .map((line) => JSON.parse(line))
}
