import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { UserError } from '../../lib/fail.mjs'
import { say } from '../../lib/progress.mjs'
import { median } from '../stream/goals.mjs'
import { bench, differenceMib } from '../vdisk/store.mjs'
import { measureCells } from './boots.mjs'
import { published } from './published.mjs'
import { settingWith } from './settings.mjs'
import { slowDisk } from './storages.mjs'
import { byCell, signed, table } from './table.mjs'
import { bytesOf, csvOf, lengthened, readsOf } from './traces.mjs'

/** Where the edge has the bytes: cold and warm, kinds of storage, and what merges cost. */

const oneByOne = { inFlight: '1', readSize: '32k' }
const places = {
  cold: { storage: 'disk', cache: 'cold' },
  warm: { storage: 'disk', cache: 'warm' },
  memory: { storage: 'tmpfs', cache: 'cold' },
}
const ways = { '32 KB one by one': oneByOne, '4 in flight': {} }
const nameOf = (place, way) => `${place}, ${way}`
const secondsOf = (one) => one.seconds
const storageSeconds = (one) => one.storageUs / 1e6

export const cold = {
  title: 'Cold and warm',
  async measure(lab, how) {
    const trace = path.join(lab.site.scratch, 'long.csv')
    const wanted = { bytes: published.boot.bytes, diskSize: lab.site.imageMib << 20 }
    const reads = lengthened(readsOf(lab.trace), wanted)
    if (bytesOf(reads) < wanted.bytes) throw new UserError('the recorded boot has too few reads.')
    writeFileSync(trace, csvOf(reads))
    return measureCells({ ...lab, trace }, cellsOf(places, ways), { ...how, name: 'cold' })
  },
  summary(measured) {
    const { middle } = byCell(measured)
    const { coldSeconds, cachedSeconds } = published.boot
    const ofStorage = (place) => middle(nameOf(place, Object.keys(ways)[0]), storageSeconds)
    const times = (slow, fast) => `${(slow / fast).toFixed(1)} times as long`
    return [
      [
        'storage of 115 MB, cold beside cached',
        times(coldSeconds, cachedSeconds),
        times(ofStorage('cold'), ofStorage('warm')),
      ],
    ]
  },
  text(measured) {
    const { middle, spread } = byCell(measured)
    const { coldSeconds, cachedSeconds, memorySeconds } = published.boot
    const theirs = { cold: coldSeconds, warm: cachedSeconds, memory: memorySeconds }
    const rows = Object.keys(ways).flatMap((way) =>
      Object.keys(places).map((place) => [
        place,
        way,
        theirs[place].toFixed(2),
        (theirs[place] / cachedSeconds).toFixed(2),
        spread(nameOf(place, way), storageSeconds, 2),
        spread(nameOf(place, way), secondsOf, 2),
        (middle(nameOf(place, way), secondsOf) / middle(nameOf('warm', way), secondsOf)).toFixed(2),
      ]),
    )
    const [slowWay, fastWay] = Object.keys(ways)
    const added = (way) => middle(nameOf('cold', way), secondsOf) - middle(nameOf('warm', way), secondsOf)
    return `Published: reading the 115 MB of a boot takes the server 6.29 s cold from a share, 1.03 s from its cache, 0.22 s from a RAM
disk. Here the recorded boot's reads, repeated at other places of the disk until they are 115 MB. Cold: page cache empty,
edge just started. Warm: the edge has booted a device before. Memory: the store on a tmpfs, edge just started, so that
it checks each block when it reads it first, as when cold.

${table(['where', 'how it asks', 'published s', 'times cached', 'storage s, all reads', 'boot s', 'times warm'], rows)}

- Beside a warm one, a cold boot that reads one by one takes ${signed(added(slowWay), 2)} s, and with four reads in flight ${signed(added(fastWay), 2)} s: these wait for the disk together (their sum in "storage" counts each).
- Cold against cached: ${(coldSeconds / cachedSeconds).toFixed(1)} times the server's time there; here ${(middle(nameOf('cold', slowWay), storageSeconds) / middle(nameOf('warm', slowWay), storageSeconds)).toFixed(1)} times.
- Not comparable: there the storage was a share, reached over a network; here it is this machine's virtual disk, whose host may have the bytes in memory although this machine has not. "Slow" in the next table stands for a rotating disk.`
  },
}

const kinds = {
  tmpfs: { storage: 'tmpfs', cache: 'cold' },
  disk: { storage: 'disk', cache: 'cold' },
  slow: { storage: 'slow', cache: 'cold' },
}
const allWays = { ...ways, '4 in flight, read-ahead': { readAhead: 'on' } }

export const storage = {
  title: 'Kinds of storage',
  measure: (lab, how) => measureCells(lab, cellsOf(kinds, allWays), { ...how, name: 'storage' }),
  summary(measured) {
    const seconds = (kind) => byCell(measured).middle(nameOf(kind, Object.keys(ways)[0]), secondsOf)
    return [
      ['a boot from a slow disk beside memory', '', `${(seconds('slow') / seconds('tmpfs')).toFixed(1)} times as long`],
    ]
  },
  text(measured) {
    const { middle, spread } = byCell(measured)
    const rows = Object.keys(allWays).flatMap((way) =>
      Object.keys(kinds).map((kind) => [
        kind,
        way,
        spread(nameOf(kind, way), secondsOf, 2),
        (middle(nameOf(kind, way), secondsOf) / middle(nameOf('tmpfs', way), secondsOf)).toFixed(2),
        spread(nameOf(kind, way), storageSeconds, 2),
        middle(nameOf(kind, way), (one) => one.coldReads).toFixed(0),
      ]),
    )
    const slow = (way) => middle(nameOf('slow', way), secondsOf)
    const [slowWay, fastWay, aheadWay] = Object.keys(allWays)
    const { coldSeconds, memorySeconds } = published.boot
    return `Published: ${coldSeconds} s from a share, ${memorySeconds} s from a RAM disk, for 115 MB. Here the recorded boot, page cache empty, edge
just started. Slow: the same disk, of which the kernel lets the edge read ${slowDisk.readsPerSecond} times and ${slowDisk.mbPerSecond} MB a second, about as a
rotating disk. A worker of the edge reads what is not in memory yet, and what it has not checked since its start.

${table(['storage', 'how it asks', 'boot s', 'times tmpfs', 'storage s, all reads', 'reads by a worker'], rows)}

- On a slow disk a boot takes ${(slow(slowWay) / middle(nameOf('tmpfs', slowWay), secondsOf)).toFixed(1)} times as long as from memory one by one (published: ${(coldSeconds / memorySeconds).toFixed(0)} times the server's time).
- There four reads in flight are ${(slow(slowWay) / slow(fastWay)).toFixed(2)} times as fast as one, and with read-ahead ${(slow(slowWay) / slow(aheadWay)).toFixed(2)} times: the disk limits the boot, not the network, and only fewer or larger reads of it help.
- Not comparable: the limit delays all reads alike; a disk's head takes longer the farther it moves.`
  },
}

function cellsOf(where, how) {
  return Object.entries(how).flatMap(([way, asks]) =>
    Object.entries(where).map(([place, kept]) => ({
      name: nameOf(place, way),
      setting: settingWith({ ...kept, ...asks }),
    })),
  )
}

const decay = { mib: 512, merges: 200, reads: 20_000 }
/** Merges at each end that are compared. */
const mergesCompared = 20

export const merge = {
  title: 'Merges',
  async measure(lab, { repeat }) {
    const inStore = async (args) => {
      const store = path.join(lab.site.scratch, 'merged')
      mkdirSync(store)
      const found = await bench([args[0], store, ...args.slice(1)])
      rmSync(store, { recursive: true })
      return found
    }
    const difference = []
    for (let round = 1; round <= repeat; round++) {
      difference.push(await inStore(['difference', '--mib', String(differenceMib)]))
      say(`merge: ${differenceMib} MiB, round ${round} of ${repeat}`)
    }
    const numbers = Object.entries(decay).flatMap(([name, value]) => [`--${name}`, String(value)])
    const many = await inStore(['decay', ...numbers])
    say(`merge: ${decay.merges} merges`)
    return { difference, many }
  },
  summary({ difference }) {
    const middle = median(difference.map(({ mergeUs }) => mergeUs / 1000))
    return [['a merge of 2.7 GB', `${published.merge.vhdxSeconds} s`, `${middle.toFixed(0)} ms`]]
  },
  text({ difference, many }) {
    const ms = difference.map(({ mergeUs }) => mergeUs / 1000)
    const middle = median(ms)
    const { vhdSeconds, vhdxSeconds } = published.merge
    const one = [
      `a difference of ${differenceMib} MiB, page cache empty`,
      `${vhdSeconds} s (VHD), ${vhdxSeconds} s (VHDX, cloned blocks)`,
      `${middle.toFixed(1)} ms (${Math.min(...ms).toFixed(1)} to ${Math.max(...ms).toFixed(1)})`,
      `${((1000 * vhdxSeconds) / middle).toFixed(0)} (beside VHDX)`,
    ]
    const part = (from, to) => median(many.mergeUs.slice(from, to)) / 1000
    const [early, late] = [part(1, 1 + mergesCompared), part(-mergesCompared)]
    const rows = many.rounds.map(({ merges, warmUs, coldUs }) => [merges, warmUs.toFixed(1), coldUs.toFixed(1)])
    const [first, last] = [many.rounds[0], many.rounds.at(-1)]
    return `Published: 2 minutes and 4 seconds for a differencing disk of 2.7 GB; users report merges of minutes after months.

${table(['merge', 'published', 'here', 'times as fast'], [one])}

${decay.merges} updates of 1 % of a disk of ${many.mib} MiB, in single blocks, each merged into a new base: the first ${mergesCompared} merges take ${early.toFixed(2)} ms
(median), the last ${mergesCompared} ${late.toFixed(2)} ms, the longest ${(Math.max(...many.mergeUs) / 1000).toFixed(1)} ms. Random reads of 32 KiB of the newest base, in µs:

${table(['merges before', 'from memory', 'from the disk'], rows)}

- A merge writes one file of a few hundred bytes and syncs it, however large the difference is. It copied ${median(difference.map(({ copiedBytes }) => copiedBytes))} bytes.
- After ${last.merges} merges one takes ${(late / early).toFixed(1)} times as long as at first. Nothing was deleted, so the store keeps ${2 * (last.merges + 1)} versions then: a merge looks at all of them for the next counter, and lists their directory for each. So it grows with the square of the versions that are kept, not with age or size; deleting merged versions shortens it.
- Reads: changed blocks lie where they were written, in another order than those of the base. They take ${(last.warmUs / first.warmUs).toFixed(2)} times as long from memory, ${(last.coldUs / first.coldUs).toFixed(2)} times from this disk.
- Not comparable: the published merges ran on another machine's disks, and the decay is reported without figures.`
  },
}
