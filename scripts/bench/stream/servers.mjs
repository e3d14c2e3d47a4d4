import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { UserError } from '../../lib/fail.mjs'
import { edgeProgram } from '../../lib/paths.mjs'
import { WatchedProcess } from '../watched-process.mjs'

const startLimitMs = 20_000
const bootScriptPort = 6980
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
 * @param {string} [before] the path of another build of the edge, which is measured in place of the NBD servers
 * @returns {Peer[]}
 */
export function peersHere(before) {
  const ours = edgePeers(edgeProgram, '')
  if (before !== undefined) return [...ours, ...edgePeers(before, ' before')]
  return [
    ...ours,
    { by: 'nbdkit', way: 'nbd', port: nbdPort, start: startNbdkit },
    { by: 'qemu-nbd', way: 'nbd', port: nbdPort, start: startQemuNbd },
  ]
}

/** An edge that can encrypt does, unless it is started with `--clear`. */
function edgePeers(program, suffix) {
  const help = execFileSync(program, ['serve', '--help'], { encoding: 'utf8' })
  const canEncrypt = /--clear\b/.test(help)
  const ciphers = canEncrypt ? ['encrypted', 'clear'] : ['clear']
  return ciphers.map((cipher) => {
    const args = cipher === 'clear' && canEncrypt ? ['--clear'] : []
    const trust = /--trust-mac-from\b/.test(help)
    const start = startEdge(program, args, trust)
    return { by: `${cipher}${suffix}`, cipher, way: 'stream', port: bootScriptPort, program, args, start }
  })
}

function startEdge(program, more, trust) {
  return async (cable, image, data) => {
    const options = ['--json', '--listen', cable.serverIp, '--dhcp', 'off', '--vdisk', image, '--data', data]
    if (trust) options.push('--trust-mac-from', cable.clientNetwork)
    const edge = new WatchedProcess(cable.onServer(program, ['serve', ...options, ...more]))
    await edge.waitFor(/serving on/, startLimitMs)
    return edge
  }
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
