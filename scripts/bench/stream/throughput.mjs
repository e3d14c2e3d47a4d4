import { say } from '../../lib/progress.mjs'
import { loadOnce } from './load.mjs'

/**
 * What the devices do; each has one read of 32 KiB in flight unless `depth` says otherwise.
 * @typedef {{ name: string, mtu: number, devices: number, depth: number }} ThroughputCase
 */

/** @type {ThroughputCase[]} */
export const throughputCases = [
  { name: '1 device', mtu: 1500, devices: 1, depth: 1 },
  { name: '8 devices', mtu: 1500, devices: 8, depth: 1 },
  { name: '16 devices', mtu: 1500, devices: 16, depth: 1 },
  { name: '64 devices', mtu: 1500, devices: 64, depth: 1 },
  { name: '256 devices', mtu: 1500, devices: 256, depth: 1 },
  { name: '16 devices, depth 4', mtu: 1500, devices: 16, depth: 4 },
  { name: '16 devices, MTU 9000', mtu: 9000, devices: 16, depth: 1 },
]

/**
 * Measures all peers in turns, each started for its turn alone.
 * @param {import('./load.mjs').Site} site
 * @param {{ rounds: number, measureMs: number, cases: ThroughputCase[] }} options
 */
export async function measureThroughput(site, { rounds, measureMs, cases }) {
  const measured = []
  for (const mode of ['S', 'U']) {
    for (const what of cases) {
      site.cable.set(mode, what.mtu)
      const load = { devices: what.devices, depth: what.depth, mtu: what.mtu, measureMs }
      for (let round = 0; round < rounds; round++) {
        // The first one has the colder machine.
        const turns = round % 2 === 0 ? site.peers : site.peers.toReversed()
        for (const peer of turns) {
          measured.push({ mode, case: what.name, by: peer.by, ...(await loadOnce(site, peer, load)) })
        }
      }
      say(`mode ${mode}, ${what.name}: measured`)
    }
  }
  return measured
}
