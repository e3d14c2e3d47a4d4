import path from 'node:path'
import { UserError } from '../../lib/fail.mjs'
import { inRoot } from '../../lib/paths.mjs'
import { say } from '../../lib/progress.mjs'
import { lastJson } from '../vdisk/run.mjs'
import { checked, named, runOnClient, withServer } from './load.mjs'
import { delayUs } from './losses.mjs'
import { port } from './ports.mjs'

const limitMs = 90_000
const { mbitPerSecond } = port
/** The edge merges what a boot read shortly after its end. */
const learnTriesMax = 40
/** What a profile names is packed in the background: it is when so many boots one after the other get no smaller. */
export const bootsAlike = 4
const alike = 0.995

export const replayCases = ['bios', 'uefi'].map((name) => ({
  name: `boot replay, ${name}`,
  trace: `e2e/traces/boot-trace-${name}.csv`,
}))

/** Memory of a device for read-ahead, which it has by default. */
export const readAheadMib = 64
/** Once like a device with four reads in flight, and once like PVS: 32 KB, and the next when it has arrived. */
const asSystem = ['--depth', '4']
const asPvs = ['--depth', '1', '--piece', String(32 << 10)]

/**
 * Replays the reads of recorded boots without think times, over a 1 Gb/s link with a round trip of 0.5 ms.
 * @param {import('./load.mjs').Site} site
 * @param {{ rounds: number, cases: typeof replayCases }} options
 */
export async function measureReplays(site, { rounds, cases }) {
  const measured = []
  const far = await site.cable.behindFarPort({ roundTripUs: 2 * delayUs, ...port })
  try {
    for (const { name, trace } of cases) {
      for (let round = 0; round < rounds; round++) {
        for (const peer of round % 2 === 0 ? site.peers : site.peers.toReversed()) {
          const found = await replayWith(site, peer, trace)
          measured.push(...found.map((one) => ({ case: name, by: peer.by, ...one })))
        }
      }
      say(`${name}: measured`)
    }
  } finally {
    await far.stop()
  }
  return measured.map((one) => ({
    ...one,
    timesBytes: one.seconds / ((one.bytes * 8) / (mbitPerSecond * 1e6)),
  }))
}

function replayWith(site, peer, trace) {
  return withServer(site, peer, async () => {
    const replay = (args) => replayOnce(site, peer, ['--trace', path.resolve(inRoot(), trace), ...args])
    if (peer.way === 'nbd') return [{ how: 'four reads under way', ...(await replay(asSystem)) }]
    const cold = await replay(asSystem)
    if (cold.profileSize !== 0) throw new UserError(`the first boot of a disk found a boot profile.`)
    return [
      { how: 'cold: no profile yet', ...cold },
      { how: 'learned profile', ...(await learned(replay, site.content ? bootsAlike : 1)) },
      { how: '32 KB asked for at a time, as PVS does', ...(await replay(asPvs)) },
    ]
  })
}

/** Boots once from the server, as `args` of `stream-bench replay` say; returns what it measured. */
export async function replayOnce(site, peer, args) {
  const server = ['--way', peer.way, '--server', `${site.cable.serverIp}:${peer.port}`]
  const content = site.content === undefined ? [] : ['--image', site.content]
  const disk = ['--disk-mib', String(site.imageMib), ...content]
  const output = await runOnClient(site, ['replay', ...server, ...disk, ...args], limitMs, peer.by)
  return checked(peer, named(lastJson(output)))
}

/** Returns what the last of so many boots with a profile measured that took the same bytes from the network. */
export async function learned(replay, wanted) {
  let seen = 0
  let least = Number.POSITIVE_INFINITY
  for (let attempt = 0; attempt < learnTriesMax; attempt++) {
    const found = await replay([...asSystem, '--read-ahead-mib', String(readAheadMib)])
    if (found.profileSize === 0) continue
    seen = found.bytesIn < least * alike ? 1 : seen + 1
    least = Math.min(least, found.bytesIn)
    if (seen === wanted) return found
  }
  throw new UserError(`after ${learnTriesMax} boots the edge offered no boot profile, or still packed it.`)
}
