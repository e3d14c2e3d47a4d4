import { say } from '../../lib/progress.mjs'
import { loadOnce } from './load.mjs'

const mtu = 1500
/** In each direction: a round trip of 0.5 ms. */
export const delayUs = 250

/** @type {{ name: string, lossPercent: number }[]} */
export const lossCases = [
  { name: '0.5 ms, no loss', lossPercent: 0 },
  { name: '0.5 ms, 0.1 % loss', lossPercent: 0.1 },
  { name: '0.5 ms, 1 % loss', lossPercent: 1 },
]

/**
 * Measures one device with one read in flight, over a link with a delay that loses packets in both directions.
 * @param {import('./load.mjs').Site} site
 * @param {{ rounds: number, measureMs: number, cases: typeof lossCases }} options
 */
export async function measureLosses(site, { rounds, measureMs, cases }) {
  const measured = []
  for (const { name, lossPercent } of cases) {
    const relay = await site.cable.delay({ delayUs, lossPercent })
    try {
      for (let round = 0; round < rounds; round++) {
        const turns = round % 2 === 0 ? site.peers : site.peers.toReversed()
        for (const peer of turns) {
          // Twice as long: with losses there are few reads for the 99th percentile.
          const load = { devices: 1, depth: 1, mtu, measureMs: 2 * measureMs }
          measured.push({ case: name, by: peer.by, ...(await loadOnce(site, peer, load)) })
        }
      }
    } finally {
      await relay.stop()
    }
    say(`${name}: measured`)
  }
  return measured
}
