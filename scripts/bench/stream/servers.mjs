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
 * @property {string[]} [args] of our edge, for its cipher
 */

/**
 * The servers, in the order of the tables. All read the same file, which is in the page cache; otherwise each runs with
 * its defaults.
 */
export function peersHere() {
  return [
    ...edgeCiphers().map(({ by, args }) => ({
      by,
      way: 'stream',
      port: bootScriptPort,
      args,
      start: startEdge(args),
    })),
    { by: 'nbdkit', way: 'nbd', port: nbdPort, start: startNbdkit },
    { by: 'qemu-nbd', way: 'nbd', port: nbdPort, start: startQemuNbd },
  ]
}

/** For the edge that was built: one that can encrypt does, unless it is started with `--clear`. */
function edgeCiphers() {
  const help = execFileSync(edgeProgram, ['serve', '--help'], { encoding: 'utf8' })
  const clear = { by: 'clear', args: [] }
  if (!/--clear\b/.test(help)) return [clear]
  return [
    { by: 'encrypted', args: [] },
    { ...clear, args: ['--clear'] },
  ]
}

function startEdge(more) {
  return async (cable, image, data) => {
    const edge = new WatchedProcess(
      cable.onServer(edgeProgram, [
        'serve',
        '--json',
        '--listen',
        cable.serverIp,
        '--dhcp',
        'off',
        '--vdisk',
        image,
        '--data',
        data,
        ...more,
      ]),
    )
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
