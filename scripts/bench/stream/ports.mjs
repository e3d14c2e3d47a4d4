import { execFileSync } from 'node:child_process'
import { say } from '../../lib/progress.mjs'
import { loadOnce } from './load.mjs'

const mtu = 1500
/** TCP's payload in a packet of that size, with its timestamps. */
const segmentBytes = 1448
export const port = { mbitPerSecond: 1000, queueKb: 128 }

/** @type {{ name: string, devices: number, depth: number }[]} */
export const portCases = [
  { name: 'slow port, 16 devices', devices: 16, depth: 1 },
  { name: 'slow port, 64 devices', devices: 64, depth: 1 },
  { name: 'slow port, 64 devices, depth 4', devices: 64, depth: 4 },
]

/**
 * Measures devices behind one port of a switch that is slower than their server and has a small buffer.
 * @param {import('./load.mjs').Site} site
 * @param {{ rounds: number, measureMs: number, cases: typeof portCases }} options
 */
export async function measurePorts(site, { rounds, measureMs, cases }) {
  const measured = []
  const slow = site.cable.behindPort(port)
  try {
    for (const { name, devices, depth } of cases) {
      for (let round = 0; round < rounds; round++) {
        const turns = round % 2 === 0 ? site.peers : site.peers.toReversed()
        for (const peer of turns) {
          // Twice as long: each of many devices has few reads.
          const load = { devices, depth, mtu, measureMs: 2 * measureMs }
          measured.push({ case: name, by: peer.by, ...withAgain(peer, await counted(site, peer, load)) })
        }
      }
      say(`${name}: measured`)
    }
  } finally {
    slow.remove()
  }
  return measured
}

/**
 * Adds the segments that the servers' end retransmitted, which TCP counts for all connections (RFC 4022), the warm-up
 * included.
 */
async function counted(site, peer, load) {
  const before = sentAgain(site)
  const found = await loadOnce(site, peer, load)
  return { ...found, segmentsAgain: sentAgain(site) - before }
}

function sentAgain(site) {
  const { command, args } = site.cable.onServer('cat', ['/proc/net/snmp'])
  const [names = '', values = ''] = execFileSync(command, args, { encoding: 'utf8' })
    .split('\n')
    .filter((line) => line.startsWith('Tcp:'))
  return Number(values.split(' ')[names.split(' ').indexOf('RetransSegs')])
}

/** Retransmitted bytes, in per cent of the bytes read. */
function withAgain(peer, found) {
  const bytes = peer.way === 'nbd' ? found.segmentsAgain * segmentBytes : found.missingFragments * found.fragmentSize
  return { ...found, againPercent: (100 * bytes) / found.bytes }
}
