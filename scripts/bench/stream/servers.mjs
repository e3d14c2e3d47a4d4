import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { UserError } from '../../lib/fail.mjs'
import { edgeProgram } from '../../lib/paths.mjs'
import { lastJson, runToEnd } from '../vdisk/run.mjs'
import { WatchedProcess } from '../watched-process.mjs'

export const startLimitMs = 20_000
export const bootScriptPort = 6980
const nbdPort = 10_809

/**
 * @typedef {object} Peer
 * @property {string} by
 * @property {'stream' | 'nbd'} way
 * @property {(cable: import('./cable.mjs').Cable, image: string, data: string) => Promise<WatchedProcess>} start
 * @property {number} port where devices connect
 * @property {string} [program] our edge
 * @property {string[]} [args] of our edge, for its cipher
 * @property {'encrypted' | 'clear'} [cipher] that our edge is to use
 */

/**
 * The servers, in the order of the tables. All read the same file, which is in the page cache; otherwise each runs with
 * its defaults.
 * @param {object} how
 * @param {string} [how.before] the path of another build of the edge, which is measured too
 * @param {string} [how.stores] a directory for stores: our edges import the disk and serve the version
 * @returns {Peer[]}
 */
export function peersHere({ before, stores }) {
  const ours = edgePeers(edgeProgram, '', stores)
  const former = before === undefined ? [] : edgePeers(before, ' before', stores)
  if (before !== undefined && stores === undefined) return [...ours, ...former]
  if (stores !== undefined) {
    // What is packed is encrypted; clear text beside it says nothing new.
    const encrypted = [...ours, ...former].filter(({ cipher }) => cipher === 'encrypted')
    return [...encrypted, { by: 'nbdkit', way: 'nbd', port: nbdPort, start: startNbdkit }]
  }
  return [
    ...ours,
    { by: 'nbdkit', way: 'nbd', port: nbdPort, start: startNbdkit },
    { by: 'qemu-nbd', way: 'nbd', port: nbdPort, start: startQemuNbd },
  ]
}

/** An edge that can encrypt does, unless it is started with `--clear`. */
function edgePeers(program, suffix, stores) {
  const help = execFileSync(program, ['serve', '--help'], { encoding: 'utf8' })
  const canEncrypt = /--clear\b/.test(help)
  const ciphers = canEncrypt ? ['encrypted', 'clear'] : ['clear']
  return ciphers.map((cipher) => {
    const args = cipher === 'clear' && canEncrypt ? ['--clear'] : []
    const trust = /--trust-mac-from\b/.test(help)
    const start = startEdge(program, args, trust, stores)
    return { by: `${cipher}${suffix}`, cipher, way: 'stream', port: bootScriptPort, program, args, start }
  })
}

function startEdge(program, more, trust, stores) {
  return async (cable, image, data) => {
    const disk = stores === undefined ? ['--vdisk', image, '--data', data] : await storedDisk(program, image, stores)
    const options = ['--json', '--listen', cable.serverIp, '--dhcp', 'off', ...disk]
    if (trust) options.push('--trust-mac-from', cable.clientNetwork)
    const edge = new WatchedProcess(cable.onServer(program, ['serve', ...options, ...more]))
    await edge.waitFor(/serving on/, startLimitMs)
    return edge
  }
}

/** What a program has imported, by program and image. */
const imported = new Map()

/**
 * Imports the image once with this program, and packs it again as an edge does in the background, if it can. Boot
 * profiles of earlier runs are removed.
 */
async function storedDisk(program, image, stores) {
  const key = `${program} ${image}`
  if (!imported.has(key)) {
    const made = await importDisk(program, image, stores)
    if (/^ *compress\b/m.test(execFileSync(program, ['vdisk', '--help'], { encoding: 'utf8' })))
      await runToEnd(program, ['vdisk', 'compress', '--store', made.store])
    imported.set(key, made)
  }
  const { store, version } = imported.get(key)
  rmSync(path.join(store, 'profiles'), { recursive: true, force: true })
  return ['--store', store, '--version', version]
}

/**
 * Imports the image into a new store below `stores`.
 * @returns {Promise<{ store: string, version: string }>}
 */
export async function importDisk(program, image, stores) {
  const store = mkdtempSync(path.join(stores, 'store-'))
  await runToEnd(program, ['vdisk', 'init', '--store', store])
  const options = ['--store', store, '--name', 'bench', '--format', 'raw', '--no-boot-files', '--json']
  const { version } = lastJson(await runToEnd(program, ['vdisk', 'import', image, ...options]))
  return { store, version }
}

/** Its plugin `file`, with its default number of threads per connection (16). */
function startNbdkit(cable, image) {
  return listening(
    cable.onServer('/usr/bin/nbdkit', [
      '--foreground',
      '--readonly',
      '--ipaddr',
      cable.serverIp,
      '--port',
      String(nbdPort),
      'file',
      image,
    ]),
  )
}

/** With the page cache (`--cache=writeback`, its default), for any number of clients. */
function startQemuNbd(cable, image) {
  return listening(
    cable.onServer('/usr/bin/qemu-nbd', [
      '--persistent',
      '--read-only',
      '--shared=0',
      '--format=raw',
      '--cache=writeback',
      '--bind',
      cable.serverIp,
      '--port',
      String(nbdPort),
      image,
    ]),
  )
}

/** Neither reports when it accepts connections. */
async function listening(program) {
  const server = new WatchedProcess(program)
  const limit = performance.now() + startLimitMs
  while (!isListening(server)) {
    if (performance.now() > limit)
      throw new UserError(`${program.args.join(' ')} does not listen:\n${server.output.slice(-3000)}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  return server
}

/** Reads the table of the process's own network namespace (proc_net(5); state 0A is LISTEN). */
function isListening(server) {
  const port = nbdPort.toString(16).toUpperCase().padStart(4, '0')
  const file = `/proc/${server.pid}/net/tcp`
  if (!existsSync(file)) throw new UserError(`a server has ended:\n${server.output.slice(-3000)}`)
  return new RegExp(`^\\s*\\d+: [0-9A-F]{8}:${port} [0-9A-F]{8}:0000 0A `, 'm').test(readFileSync(file, 'utf8'))
}
