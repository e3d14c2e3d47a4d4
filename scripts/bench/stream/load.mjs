import { mkdtempSync, rmSync } from 'node:fs'
import path from 'node:path'
import { UserError } from '../../lib/fail.mjs'
import { streamBenchProgram } from '../../lib/paths.mjs'
import { lastJson } from '../vdisk/run.mjs'
import { WatchedProcess } from '../watched-process.mjs'

/** The headers of IP and UDP. */
const overheadSize = 28
/** Time to open the sessions, in addition to the measured time. */
const openLimitMs = 60_000

/**
 * @typedef {object} Site
 * @property {import('./cable.mjs').Cable} cable
 * @property {import('./servers.mjs').Peer[]} peers
 * @property {string} image of known bytes
 * @property {number} imageMib
 * @property {string} scratch a directory for the servers' data
 * @property {string} [content] the file that reads are compared with; without it the image is a pattern
 * @property {boolean} isStopped somebody has interrupted the benchmark
 */

/** Devices of real content are in two processes: one that unpacks and compares alone is slower than a server. */
const clientsOfContent = 2

/**
 * Starts the server for one load, and returns what `stream-bench load` measured.
 * @param {Site} site
 * @param {import('./servers.mjs').Peer} peer
 * @param {{ devices: number, depth: number, mtu: number, measureMs: number, readSize?: number,
 *   codec?: 'off' | 'lz4' }} load
 */
export async function loadOnce(site, peer, load) {
  return withServer(site, peer, async (server) => {
    const clients = site.content === undefined ? 1 : Math.min(clientsOfContent, load.devices)
    const outputs = await Promise.all(
      Array.from({ length: clients }, (_, index) => {
        const part = { ...load, devices: load.devices / clients, first: (index * load.devices) / clients }
        return runOnClient(site, loadOptions(site, peer, server, part), load.measureMs + openLimitMs, peer.by)
      }),
    )
    return together(outputs.map((output) => checked(peer, named(lastJson(output)))))
  })
}

function loadOptions(site, peer, server, { devices, first, depth, mtu, measureMs, readSize, codec }) {
  return [
    'load',
    '--way',
    peer.way,
    '--server',
    `${site.cable.serverIp}:${peer.port}`,
    '--devices',
    String(devices),
    '--first-mac',
    `02:bf:00:01:00:${(1 + first).toString(16).padStart(2, '0')}`,
    '--depth',
    String(depth),
    '--disk-mib',
    String(site.imageMib),
    '--measure-ms',
    String(measureMs),
    '--packet-size-max',
    String(mtu - overheadSize),
    '--server-pid',
    String(server.pid),
    ...(codec === undefined ? [] : ['--codec', codec]),
    ...(readSize === undefined ? [] : ['--read-size', String(readSize)]),
    ...contentOptions(site),
  ]
}

/**
 * What clients measured that ran at the same time. Each has counted all that the server and the machine took. Of the
 * waits, those of the client with the longer ones.
 */
function together(found) {
  if (found.length === 1) return found[0]
  const bytes = sumOf(found.map((one) => one.bytes))
  const most = (name) => Math.max(...found.map((one) => one[name]))
  const sum = (name) => sumOf(found.map((one) => one[name]))
  const ofAll = (name) => 1 / sumOf(found.map((one) => 1 / one[name]))
  return {
    ...found[0],
    bytes,
    ...Object.fromEntries(['p50Us', 'p99Us', 'maxUs', 'seconds', 'mostMbPerSecond'].map((name) => [name, most(name)])),
    leastMbPerSecond: Math.min(...found.map((one) => one.leastMbPerSecond)),
    mbPerSecond: sum('mbPerSecond'),
    ...Object.fromEntries(countNames.map((name) => [name, sum(name)])),
    serverSecondsPerGb: ofAll('serverSecondsPerGb'),
    clientSecondsPerGb: sumOf(found.map((one) => one.clientSecondsPerGb * one.bytes)) / bytes,
    machineSecondsPerGb: ofAll('machineSecondsPerGb'),
  }
}

const countNames = [
  'reads',
  'retransmits',
  'missingFragments',
  'unexpectedFragments',
  'unpackedBytes',
  'contradictions',
]
const sumOf = (values) => values.reduce((sum, value) => sum + value, 0)

/** A disk of real content is warm when each of its units was read some times. */
export function contentOptions({ content }) {
  return content === undefined ? [] : ['--image', content, '--warm-up-ms', '8000']
}

/** Converts names to JavaScript's: `mb_per_second` becomes `mbPerSecond`. */
export const named = (found) =>
  Object.fromEntries(
    Object.entries(found).map(([name, value]) => [name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase()), value]),
  )

/** Checks that what was measured under a cipher's name used that cipher. */
export function checked(peer, found) {
  const cipher = found.cipher === 'clear' ? 'clear' : 'encrypted'
  if (peer.way === 'stream' && cipher !== peer.cipher)
    throw new UserError(`the stream that was to be ${peer.by} went by ${found.cipher}.`)
  return found
}

/** @template T @param {(server: WatchedProcess) => Promise<T>} use @returns {Promise<T>} */
export async function withServer(site, peer, use) {
  if (site.isStopped) throw new UserError('the benchmark was stopped.')
  const data = mkdtempSync(path.join(site.scratch, 'server-'))
  let server
  try {
    server = await peer.start(site.cable, site.image, data)
    return await use(server)
  } finally {
    await server?.stop()
    rmSync(data, { recursive: true, force: true })
  }
}

/** Runs `stream-bench` at the devices' end, to its end. */
export async function runOnClient(site, args, limitMs, by) {
  const client = new WatchedProcess(site.cable.onClient(streamBenchProgram, args))
  const timer = setTimeout(() => void client.stop(), limitMs)
  const code = await client.ended
  clearTimeout(timer)
  if (code !== 0)
    throw new UserError(
      `stream-bench ${args[0]} of ${by} failed or took longer than ${limitMs / 1000} s:\n${client.output.slice(-3000)}`,
    )
  return client.output
}
