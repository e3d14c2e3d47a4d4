import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { link, measureCells } from './boots.mjs'
import { published } from './published.mjs'
import { settingWith } from './settings.mjs'
import { byCell, mbPerSecond, perReadMs, signed, table } from './table.mjs'
import { csvOf, even } from './traces.mjs'

/** How devices ask: burst sizes, packet sizes, and the parts of one read. */

const sizes = ['4k', '8k', '16k', '32k', '44k', 'unlimited']
const oneByOne = { inFlight: '1' }
const inFour = 'unlimited, 4 in flight'
const readAhead = 'unlimited, 4 in flight, read-ahead'

export const burst = {
  title: 'Burst sizes',
  async measure(lab, how) {
    const cells = [
      ...sizes.map((readSize) => ({ name: readSize, setting: settingWith({ ...oneByOne, readSize }) })),
      { name: inFour, setting: settingWith({}) },
      { name: readAhead, setting: settingWith({ readAhead: 'on' }) },
    ]
    return measureCells(lab, cells, { ...how, name: 'burst' })
  },
  summary(measured) {
    const seconds = (cell) => byCell(measured).middle(cell, (one) => one.seconds)
    const ours = `${(seconds('32k') / seconds('44k')).toFixed(2)} times as fast`
    const best = `${(seconds('44k') / seconds(inFour)).toFixed(2)} times as fast`
    return [
      ['44 KB at a time in place of 32 KB', '1.96 times as fast', ours],
      ['reads of any size, 4 in flight, in place of 44 KB', 'does not boot above 44 KB', best],
    ]
  },
  text(measured) {
    const { middle, spread } = byCell(measured)
    const seconds = (cell) => middle(cell, (one) => one.seconds)
    const perByte = (size, ms) => (Number.parseInt(size, 10) * 1024) / ms / 1000
    const partsOf = (size) => published.reads[Number.parseInt(size, 10)]
    const rateOf = (size) => {
      const parts = partsOf(size)
      return parts ? perByte(size, sum(Object.values(parts))).toFixed(0) : ''
    }
    const rows = [...sizes, inFour, readAhead].map((cell) => [
      cell,
      rateOf(cell),
      spread(cell, mbPerSecond, 1),
      spread(cell, (one) => one.seconds, 3),
      (seconds('4k') / seconds(cell)).toFixed(2),
      spread(cell, perReadMs('fetchUs'), 3),
    ])
    const falls = sizes.every((size, index) => index === 0 || seconds(size) <= seconds(sizes[index - 1]))
    const theirs = rateOf('44k') / rateOf('32k')
    const ours = seconds('32k') / seconds('44k')
    return `Published: larger is better (4, 8, 16, 32 and 44 KB, three boots each); the times of these boots were not
published, only those of one read of 32 and 44 KB. Above 44 KB (32 packets) a target did not boot.

${table(['asked for at a time', 'published MB/s', 'MB/s', 'boot s', 'times as fast as 4 KB', 'ms a read'], rows)}

- ${falls ? 'Larger is better here too: the median falls with each size' : 'Larger is better here too, though not at each step of this run'}. From 4 KB to unlimited the boot becomes ${(seconds('4k') / seconds('unlimited')).toFixed(1)} times as fast. There is no size at which a device does not boot: a read of any size up to 128 KiB is one request.
- From 32 to 44 KB: ${theirs.toFixed(2)} times as fast there, ${ours.toFixed(2)} here. Half of the 0.4 ms that a read gains there is storage, which is in memory here.
- Four reads in flight make a boot ${(seconds('unlimited') / seconds(inFour)).toFixed(2)} times as fast as one at a time without a limit, and with the profile of an earlier boot ${(seconds('unlimited') / seconds(readAhead)).toFixed(2)} times. PVS's boot loader has one in flight.
- Not comparable: a burst there is what one read sends before an acknowledgement, here the size of a request; half of the reads of the recorded boot have 4 KB, so that no size makes them larger. A read that exceeds the congestion window is requested in parts.`
  },
}

const packetCells = [
  { name: '1500, 32 KB one by one', mtu: '1500', readSize: '32k', ...oneByOne },
  { name: '9000, 32 KB one by one', mtu: '9000', readSize: '32k', ...oneByOne },
  { name: '1500, 4 in flight', mtu: '1500' },
  { name: '9000, 4 in flight', mtu: '9000' },
]

export const jumbo = {
  title: 'Jumbo frames',
  measure: (lab, how) =>
    measureCells(
      lab,
      packetCells.map(({ name, ...values }) => ({ name, setting: settingWith(values) })),
      { ...how, name: 'jumbo' },
    ),
  summary(measured) {
    const { middle } = byCell(measured)
    const [, , fast, fastJumbo] = packetCells.map(({ name }) => name)
    const gain = middle(fastJumbo, mbPerSecond) - middle(fast, mbPerSecond)
    return [['packets of 9000 bytes in place of 1500', `+${published.jumboGainMb} MB/s`, `${signed(gain, 1)} MB/s`]]
  },
  text(measured) {
    const { middle, spread } = byCell(measured)
    const rows = packetCells.map(({ name, mtu }) => [
      name,
      published.packets[mtu].readMs.join(' to '),
      spread(name, perReadMs('fetchUs'), 3),
      spread(name, mbPerSecond, 1),
      middle(name, (one) => one.packetsIn).toFixed(0),
      spread(name, (one) => one.seconds, 3),
    ])
    const gain = (small, large) => middle(large, mbPerSecond) - middle(small, mbPerSecond)
    const [slow, slowJumbo, fast, fastJumbo] = packetCells.map(({ name }) => name)
    return `Published: the 24 packets of a read of 32 KB took 4 to 6 ms, with frames of 9014 bytes 1 to 2 ms; the boot as a whole
gained ${published.jumboGainMb} MB/s, since stage 1 does not use them.

${table(['MTU, and how it asks', 'published ms a read of 32 KB', 'ms a read', 'MB/s', 'packets', 'boot s'], rows)}

- Larger packets gain ${gain(slow, slowJumbo).toFixed(1)} MB/s one by one and ${gain(fast, fastJumbo).toFixed(1)} MB/s with four reads in flight (published: ${published.jumboGainMb}).
- On a line of 1 Gb/s they save headers, of which there are few ("One read of 32 KB"), and work for each packet, of which a PVS target had much: 24 packets in 4 to 6 ms are 200 µs a packet.
- Not comparable: the published times are those of a target's driver, which handled an interrupt for each packet. Here a veth device and a program that receives many packets in one call stand for both cards. The milliseconds are means of all reads of the boot, most of which are smaller than 32 KB.`
  },
}

const readCells = [
  { name: '32 KB, MTU 1500', kb: 32, mtu: '1500' },
  { name: '44 KB, MTU 1500', kb: 44, mtu: '1500' },
  { name: '32 KB, MTU 9000', kb: 32, mtu: '9000' },
]
/** Of each size. */
const evenReads = 1_000
const ethernetAndIp = 14 + 28
/** Header and tag of a sealed packet (STREAM.md). */
const headerSize = 16 + 16

export const read = {
  title: 'One read, in its parts',
  async measure(lab, how) {
    const measured = []
    for (const kb of new Set(readCells.map((cell) => cell.kb))) {
      const trace = path.join(lab.site.scratch, `even-${kb}.csv`)
      writeFileSync(trace, csvOf(even({ size: kb << 10, count: evenReads, diskSize: lab.site.imageMib << 20 })))
      const cells = readCells
        .filter((cell) => cell.kb === kb)
        .map(({ name, mtu }) => ({ name, setting: settingWith({ ...oneByOne, mtu }) }))
      measured.push(...(await measureCells({ ...lab, trace }, cells, { ...how, name: `read of ${kb} KB` })))
    }
    return measured
  },
  summary(measured) {
    const { middle } = byCell(measured)
    return readCells.slice(0, 2).map(({ name, kb }) => {
      const theirs = sum(Object.values(published.reads[kb]))
      return [`one read, ${name}`, `${theirs.toFixed(1)} ms`, `${middle(name, wholeMs).toFixed(2)} ms`]
    })
  },
  text(measured) {
    const { middle, spread } = byCell(measured)
    return `Published, a read of 32 KB: 1.4 ms = storage 0.3 + send 0.5 + acknowledgement 0.2 + turnaround 0.4; of 44 KB: 1.0 ms =
0.1 + 0.4 + 0.1 + 0.4. Here, ${evenReads} reads of one size, one after the other, from memory:

${table(['read', 'whole ms', 'storage', 'send', 'wire', 'turnaround', 'published ms', 'times as fast'], readCells.map(partsRow(middle, spread)))}

${table(['read', 'packets', 'published', 'of these twice', 'bytes of UDP a packet', 'header and tag', 'published'], readCells.map(packetsRow(middle)))}

- Storage: from the request to the bytes in hand, checked. Send: until the kernel has the last packet. Wire: all that the device sees beside these, so the line's time for the bytes (0.27 ms for 32 KB at 1 Gb/s), the round trip of ${link.roundTripUs / 1000} ms and the kernels. Turnaround: from the last byte to the next request.
- What is published as send is the time until the last packet has left, and is in "wire" here; the acknowledgement has no counterpart, since the next request is all that the edge needs.
- Headers: 16 bytes and a tag of 16 bytes, which encrypts and authenticates, of each packet, beside 56 bytes without protection there. Ethernet, IP and UDP add ${ethernetAndIp} bytes to both.
- Not comparable: the published turnaround contains Windows, which decides what to read next; here a program asks at once. The published figures were read from traces of a server, to 0.1 ms.`
  },
}

const wholeMs = (one) => (one.seconds * 1000) / one.reads

function partsRow(middle, spread) {
  return ({ name, kb }) => {
    const turnaround = (one) => wholeMs(one) - perReadMs('fetchUs')(one)
    const theirs = sum(Object.values(published.reads[kb]))
    return [
      name,
      spread(name, wholeMs, 3),
      ...['storageUs', 'sendUs', 'wireUs'].map((part) => middle(name, perReadMs(part)).toFixed(3)),
      middle(name, turnaround).toFixed(3),
      theirs.toFixed(1),
      (theirs / middle(name, wholeMs)).toFixed(1),
    ]
  }
}

function packetsRow(middle) {
  return ({ name, kb, mtu }) => {
    const { payload, header, perRead } = published.packets[mtu]
    const size = middle(name, (one) => one.bytesIn / one.packetsIn)
    return [
      name,
      middle(name, (one) => one.packetsIn / one.reads).toFixed(1),
      kb === 32 ? perRead : '',
      middle(name, (one) => one.unexpectedFragments / one.reads).toFixed(2),
      size.toFixed(0),
      `${((100 * headerSize) / size).toFixed(1)} %`,
      `${((100 * header) / payload).toFixed(1)} %`,
    ]
  }
}

const sum = (values) => values.reduce((total, value) => total + value, 0)
