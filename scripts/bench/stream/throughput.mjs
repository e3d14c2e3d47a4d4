import { say } from '../../lib/progress.mjs'
import { loadOnce } from './load.mjs'

/**
 * What the devices do; each has one read of 32 KiB in flight unless `depth` and `readSize` say otherwise.
 * @typedef {{ name: string, mtu: number, devices: number, depth: number, readSize?: number,
 *   disk?: 'noise' }} ThroughputCase
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
 * What a device chooses (`bootfarm.codec=auto`): plain answers where its network card receives more than half of what
 * it unpacks, as in mode U, whose link has no limit.
 */
const codecs = { S: 'lz4', U: 'off' }

/** Of real content. @type {ThroughputCase[]} */
export const contentCases = [
  { name: '16 devices', mtu: 1500, devices: 16, depth: 1 },
  { name: '16 devices, random bytes', mtu: 1500, devices: 16, depth: 1, disk: 'noise' },
  { name: '1 device, reads of 4 KiB', mtu: 1500, devices: 1, depth: 1, readSize: 4096 },
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
      const load = {
        devices: what.devices,
        depth: what.depth,
        mtu: what.mtu,
        measureMs,
        readSize: what.readSize,
        codec: site.content === undefined ? undefined : codecs[mode],
      }
      for (let round = 0; round < rounds; round++) {
        // The first one has the colder machine.
        const turns = round % 2 === 0 ? site.peers : site.peers.toReversed()
        for (const peer of turns) {
          const found = await loadOnce(what.disk ? { ...site, ...site[what.disk] } : site, peer, load)
          measured.push({ mode, case: what.name, by: peer.by, ...found })
        }
      }
      say(`mode ${mode}, ${what.name}: measured`)
    }
  }
  return measured
}
