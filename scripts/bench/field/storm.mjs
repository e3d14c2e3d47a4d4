import { UserError } from '../../lib/fail.mjs'
import { edgeProgram } from '../../lib/paths.mjs'
import { say } from '../../lib/progress.mjs'
import { bootAll, devices } from '../stream/fleet.mjs'
import { published } from './published.mjs'
import { drawsOf, shuffled } from './statistics.mjs'
import { byCell, table } from './table.mjs'

const shards = [1, 4, 16]
/** Each takes half a minute. */
const roundsMax = 2
/** A fifth of the time of the published storms. */
const pacedSeconds = 60
const paced = `1 shard, started within ${pacedSeconds} s`
const nameOf = (count) => `${count} ${count === 1 ? 'shard' : 'shards'}, within a second`
/** No power switch starts all of them in the same millisecond. */
const atOnceSeconds = 1

export const storm = {
  title: 'Many devices at once',
  async measure(lab, { repeat, seed }) {
    await lab.way.remove()
    const below = drawsOf(seed)
    const measured = []
    const failures = []
    const boot = async (cell, count, seconds) => {
      const edge = { program: edgeProgram, args: ['--stream-shards', String(count)] }
      try {
        measured.push({ cell, ...(await bootAll(lab.site, edge, ['--start-within-s', String(seconds)])) })
        say(`storm: ${cell}`)
      } catch (error) {
        if (lab.site.isStopped || !(error instanceof UserError)) throw error
        failures.push(`${cell}: ${error.message}`)
        say(`storm: ${failures.at(-1)}`)
      }
    }
    for (let round = 0; round < Math.min(repeat, roundsMax); round++)
      for (const count of shuffled(shards, below)) await boot(nameOf(count), count, atOnceSeconds)
    await boot(paced, 1, pacedSeconds)
    const isWhole = [...shards.map(nameOf), paced].every((name) => measured.some(({ cell }) => cell === name))
    if (!isWhole) throw new UserError(failures.join(' '))
    return { measured, failures }
  },
  summary({ measured }) {
    const { first, last } = published.storms.at(-1)
    const ours = byCell(measured).middle(nameOf(1), (one) => one.lastSeconds / one.firstSeconds)
    const times = (ratio) => `${ratio.toFixed(2)} times as long`
    return [[`the last ten of ${devices} devices beside the first ten`, times(last / first), times(ours)]]
  },
  text({ measured, failures }) {
    const { middle, spread } = byCell(measured)
    const theirs = published.storms.map(({ name, threads, first, last }) => [
      `published: ${name}`,
      threads / published.stormProcessors,
      first.toFixed(1),
      last.toFixed(1),
      (last / first).toFixed(2),
      '',
    ])
    const { unlimitedStorm } = published
    const unlimited = [
      'published: I/O limits 0 (unlimited)',
      '',
      unlimitedStorm.first.toFixed(1),
      unlimitedStorm.last.toFixed(1),
      (unlimitedStorm.last / unlimitedStorm.first).toFixed(2),
      '',
    ]
    const rows = [...shards.map((count) => [nameOf(count), count]), [paced, 1]].map(([cell, threads]) => [
      cell,
      threads,
      spread(cell, (one) => one.firstSeconds, 1),
      spread(cell, (one) => one.lastSeconds, 1),
      middle(cell, (one) => one.lastSeconds / one.firstSeconds).toFixed(2),
      middle(cell, (one) => one.edgeProcessorSeconds / (one.bytes / 1e9)).toFixed(2),
    ])
    const cost = (count) => middle(nameOf(count), (one) => one.edgeProcessorSeconds / one.bytes)
    const last = (cell) => middle(cell, (one) => one.lastSeconds)
    const lastShards = shards.at(-1)
    const best = published.storms.at(-1)
    return `Published: ${devices} targets in 5 minutes, one server with 8 vCPU; the mean of the first and of the last ten. Here one edge on
one processor, ${devices} simulated devices on another, from DHCP to ready with the think times of a recorded boot; every
byte is compared. They start one after the other within a second, or within ${pacedSeconds} s; ${measured.length} storms in all.
${failures.map((failure) => `\n- Left out, since a device did not boot: ${failure}\n`).join('')}
${table(['storm', 'threads a processor', 'first ten s', 'last ten s', 'times', 'edge CPU s/GB'], [...theirs, unlimited, ...rows])}

- Threads beyond the cores: ${lastShards} shards on one processor take ${(last(nameOf(lastShards)) / last(nameOf(1))).toFixed(2)} times as long for the last ten as one, and ${(cost(lastShards) / cost(1)).toFixed(2)} times the processor time a byte. The edge has one shard fewer than cores unless told otherwise.
- There is no I/O limit to set: all within a second is "unlimited". The last ten take ${middle(nameOf(1), (one) => one.lastSeconds / one.firstSeconds).toFixed(2)} times as long as the first ten (published: ${(best.last / best.first).toFixed(2)} at best, ${(unlimitedStorm.last / unlimitedStorm.first).toFixed(2)} unlimited). Started within ${pacedSeconds} s, the last ten take ${last(paced).toFixed(1)} s.
- Not comparable: a recorded Debian boot reads 26 MB, a published target 115 MB; devices here share a processor and have no disk driver to start; the published server had eight times the processors. What can be compared is how evenly devices are served, and what more threads do. "First" and "last" are the ten fastest and the ten slowest here.`
  },
}
