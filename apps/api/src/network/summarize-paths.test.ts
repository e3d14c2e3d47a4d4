import { describe, expect, test } from 'vitest'
import type { MeasuredBoot } from './read-measured-boots.ts'
import type { StoredNetwork } from './stored-network.ts'
import { type NetworkPath, summarizePaths } from './summarize-paths.ts'

let made = 0

interface Made extends Partial<Omit<MeasuredBoot, 'network'>> {
  device?: number
  network?: Partial<StoredNetwork>
}

function bootOf({ device = 1, network = {}, ...changes }: Made = {}): MeasuredBoot {
  made += 1
  return {
    id: `boot-${made}`,
    startedMs: 1_000_000 - made,
    siteId: 'site',
    deviceId: `device-${device}`,
    mac: `02:bf:00:00:00:${device.toString(16).padStart(2, '0')}`,
    segment: '10.0.0.0/24',
    card: 'e1000e 8086:15b8',
    ...changes,
    network: { sizeMax: 1472, size: 1472, ...network },
  }
}

const many = (count: number, of: (index: number) => Made) =>
  Array.from({ length: count }, (_, index) => bootOf(of(index)))
const toDevice = (lost: number, runs = lost) => ({ packets: 20_000, lost, runs, runPackets: lost, longestRun: 1 })
const fullGigabit = { linkMbit: 1000, duplex: 'full' } as const

function only(boots: MeasuredBoot[]): NetworkPath {
  const paths = summarizePaths(boots)
  expect(paths).toHaveLength(1)
  return paths[0] as NetworkPath
}
const kinds = (boots: MeasuredBoot[]) => only(boots).faults.map(({ kind }) => kind)
const faultOf = (boots: MeasuredBoot[]) => only(boots).faults[0]

test('boots are grouped by site, segment and card', () => {
  const boots = [
    ...many(2, () => ({})),
    bootOf({ card: 'r8169' }),
    bootOf({ segment: null }),
    bootOf({ siteId: 'other', device: 2 }),
  ]
  const paths = summarizePaths(boots)
  expect(paths.map(({ boots: some }) => some.length).sort()).toEqual([1, 1, 1, 2])
  expect(paths.flatMap(({ faults }) => faults)).toEqual([])
})

describe('loss', () => {
  test('is told with its interval, as bursts or one by one, and below the noise not at all', () => {
    const spread = many(8, (index) => ({ device: index, network: { toDevice: toDevice(90 + index) } }))
    expect(faultOf(spread)?.text).toMatch(
      /^0\.4\d % of the packets to the devices are lost \(0\.\d+ % to 0\.\d+ %\), one by one\.$/,
    )
    const bursts = many(8, (index) => ({ device: index, network: { toDevice: toDevice(90 + index, 10) } }))
    expect(faultOf(bursts)).toMatchObject({
      kind: 'loss_to_device',
      text: expect.stringMatching(/in bursts of (9|10) on average/),
      check: expect.stringMatching(/queue overflows/),
    })
    // One packet in two thousand, or much in one boot of eight.
    expect(kinds(many(8, (index) => ({ device: index, network: { toDevice: toDevice(10) } })))).toEqual([])
    expect(
      kinds(many(8, (index) => ({ device: index, network: { toDevice: toDevice(index === 3 ? 4_000 : 0) } }))),
    ).toEqual([])
  })

  test('of few devices is theirs and not the segment’s', () => {
    const boots = many(40, (index) => ({
      device: index % 8,
      network: { toDevice: toDevice(index % 8 === 3 ? 800 : 1) },
    }))
    const fault = faultOf(boots)
    expect(fault?.text).toMatch(/^4 % of the packets to 1 device are lost \(\d/)
    expect(new Set(fault?.boots.map(({ mac }) => mac)).size).toBe(1)
    expect(fault?.check).toMatch(/^Check the cables/)
    // So much of it that the segment is above the noise, too.
    const most = many(40, (index) => ({
      device: index % 8,
      network: { toDevice: toDevice(index % 4 === 3 ? 9_000 : 1) },
    }))
    expect(faultOf(most)?.text).toMatch(/, most of them by 2 devices\.$/)
  })

  test('needs five boots, and what the device itself dropped is none', () => {
    expect(kinds(many(4, (index) => ({ device: index, network: { toDevice: toDevice(400) } })))).toEqual([])
    const dropped = many(8, (index) => ({ device: index, network: { toDevice: toDevice(400), socketDrops: 400 } }))
    expect(kinds(dropped)).toEqual(['device_drops'])
    expect(faultOf(dropped)?.severity).toBe('notice')
  })

  test('towards the edge is told apart', () => {
    const boots = many(8, (index) => ({ device: index, network: { fromDevice: { packets: 5_000, lost: 50 + index } } }))
    expect(faultOf(boots)).toMatchObject({ kind: 'loss_from_device', text: expect.stringMatching(/from the devices/) })
  })
})

describe('links', () => {
  test('that are slower than the others of the segment are named, by the newest boot of each device', () => {
    const usual = many(6, (index) => ({ device: index, network: fullGigabit }))
    const slow = many(3, (index) => ({ device: 10 + index, network: { linkMbit: 100, duplex: 'half' } as const }))
    expect(faultOf([...usual, ...slow])).toMatchObject({
      kind: 'half_duplex',
      text: '3 devices at 100 Mbit/s half duplex on a segment where most have 1 Gbit/s.',
      boots: { length: 3 },
    })
    const full = many(3, (index) => ({ device: 10 + index, network: { linkMbit: 100, duplex: 'full' } as const }))
    expect(faultOf([...usual, ...full])).toMatchObject({
      kind: 'slow_link',
      text: '3 devices at 100 Mbit/s on a segment where most have 1 Gbit/s.',
    })
    // The cable was replaced since.
    const mended = many(3, (index) => ({ device: 10 + index, network: fullGigabit }))
    expect(kinds([...mended, ...usual, ...slow])).toEqual([])
    expect(kinds([...usual, ...full]).length).toBe(1)
  })

  test('of another card of the segment count, and without a majority none is slow', () => {
    const usual = many(6, (index) => ({ device: index, card: 'r8169', network: fullGigabit }))
    const paths = summarizePaths([...usual, bootOf({ device: 20, network: { linkMbit: 100, duplex: 'full' } })])
    expect(paths[0]).toMatchObject({ card: 'e1000e 8086:15b8', faults: [{ kind: 'slow_link' }] })
    const halves = many(6, (index) => ({ device: index, network: { linkMbit: index < 3 ? 1000 : 100 } }))
    expect(kinds(halves)).toEqual([])
    expect(kinds([bootOf({ network: { duplex: 'half' } })])).toEqual(['half_duplex'])
  })

  test('that are damaged or come and go are named', () => {
    expect(kinds([bootOf({ network: { crcErrors: 9 } })])).toEqual([])
    expect(kinds([bootOf({ network: { crcErrors: 10 } })])).toEqual(['damaged_frames'])
    expect(faultOf(many(2, () => ({ network: { crcErrors: 1 } })))?.text).toBe(
      '1 device received 2 damaged frames (wrong checksum).',
    )
    expect(kinds([bootOf({ network: { carrierChanges: 5 } })])).toEqual([])
    expect(kinds([bootOf({ network: { carrierChanges: 6 } })])).toEqual(['unstable_link'])
  })
})

test('a path that takes less than both cards is told after two boots, and not after one of many', () => {
  const hole = { sizeMax: 8972, size: 1472, lostSize: 4052, lostSizeCount: 4, mtu: 9000 }
  expect(faultOf(many(2, () => ({ network: hole })))).toMatchObject({
    kind: 'mtu',
    text: 'Packets above 1,472 bytes vanish between edge and device: MTU 9000 here, less on the way.',
    check: expect.stringMatching(/announce 1500 by DHCP/),
  })
  expect(kinds([bootOf({ network: hole }), bootOf()])).toEqual([])
  expect(faultOf([...many(2, () => ({ network: hole })), bootOf()])?.text).toMatch(/, in 2 of 3 boots\.$/)
  expect(kinds(many(5, () => ({ network: { ...hole, lostSizeCount: 2 } })))).toEqual([])
})

test('packets that are overtaken or wait are told where most boots show it', () => {
  const order = (late: number) => ({ packets: 20_000, late, distance: 7 })
  const mixed = many(6, (index) => ({ device: index, network: { order: order(1_000 + index) } }))
  expect(faultOf(mixed)?.text).toMatch(/^5 % of the packets are overtaken .* by up to 7 places\.$/)
  expect(kinds(many(6, () => ({ network: { order: order(20) } })))).toEqual([])
  const rtt = (p95Us: number) => ({ count: 40, minUs: 100, p50Us: 300, p95Us })
  const waiting = many(6, (index) => ({ network: { rtt: rtt(index === 0 ? 400 : 9_000) } }))
  expect(faultOf(waiting)?.text).toBe('A round trip takes 300 µs, and one in twenty 9 ms or more.')
  expect(only(waiting).rtt).toEqual({ p50Us: 300, p95Us: 9_000, p95UsLow: 9_000 })
  expect(kinds(many(6, (index) => ({ network: { rtt: rtt(index < 3 ? 400 : 9_000) } })))).toEqual([])
})

test('TFTP blocks that are sent again are told by their size', () => {
  const blocks = (blockSize: number, again: number) => ({ blockSize, blocks: 4_000, again })
  const sizes = many(6, (index) => ({ network: { tftp: [blocks(1_468, 200 + index), blocks(512, 1)] } }))
  expect(faultOf(sizes)).toMatchObject({
    kind: 'tftp',
    text: '5.1 % of the TFTP blocks of 1,468 bytes are sent again, and 0.025 % of those of 512 bytes.',
    check: expect.stringMatching(/MTU/),
  })
  expect(only(sizes).tftp.map(({ blockSize }) => blockSize)).toEqual([1_468, 512])
  const all = many(6, (index) => ({ network: { tftp: [blocks(1_468, 200 + index), blocks(512, 190)] } }))
  expect(faultOf(all)?.check).toMatch(/ports and cables/)
  expect(kinds(many(6, () => ({ network: { tftp: [blocks(1_468, 20)] } })))).toEqual([])
})

test('the worst comes first', () => {
  const boots = [
    ...many(9, (index) => ({ device: index, segment: 'good' })),
    ...many(6, (index) => ({ device: index, segment: 'lossy', network: { toDevice: toDevice(900 + index) } })),
    ...many(6, (index) => ({ device: index, segment: 'worse', network: { toDevice: toDevice(1_900 + index) } })),
  ]
  expect(summarizePaths(boots).map(({ segment }) => segment)).toEqual(['worse', 'lossy', 'good'])
})
