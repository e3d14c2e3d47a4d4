import { execFileSync } from 'node:child_process'
import { mkdirSync, truncateSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { BootReport } from '@bootfarm/proto/uplink'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { bootDevices, summary } from '../lib/device/simulated-devices.ts'
import { EnrolledSite, edgeIdOf, siteKeys } from '../lib/edge/enrolled-site.ts'
import { patterned } from '../lib/edge/loopback-edge.ts'
import { x86Kernel } from '../lib/images/loader-files.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import { namespacesMissing, Segment } from '../lib/lab/segment.ts'

/**
 * The goal is 3 s, which `core/stream/client/failover_test.zig` holds in simulated time (2.3 s for six dead edges);
 * here other programs take the processor from devices and edges.
 */
const busyMachineUs = 5_000_000
const missing = namespacesMissing()
const mac = '02:bf:00:00:00:01'
const sectors = 8192
const disk = patterned(sectors * 512)
/** One after the other, so that the second stage lasts five seconds without any trouble. */
const reads = Array.from({ length: 250 }, (_, index) => `${index * 20},${(index % 100) * 32768},32768`)
const scratch = scratchDirectory()
const inScratch = (name: string) => path.join(scratch.path, name)
let site: EnrolledSite
let siteCount = 0

/** A simulated device as its program prints it at its end. */
type Device = Awaited<ReturnType<typeof boot>>

/**
 * Starts the edges of one site; the device boots at the first of them. In the order of PEERS.md each edge precedes the
 * next, for any device: in what the order prefers (near, with a weight, not draining) each has less than the one
 * before.
 */
async function startWith(ticketKeys: string[][]): Promise<void> {
  const segment = new Segment('failover', { edges: ticketKeys.length })
  const version = { sizeBytes: sectors * 512, diskPath: 'disk', kernelPath: 'kernel' }
  site = new EnrolledSite({
    segment,
    folder: inScratch(`site${siteCount++}`),
    edges: ticketKeys.map((_, index) => ({
      subnets: (index & 1) === 0 ? [segment.subnet] : [],
      weight: (index & 2) === 0 ? 10 : 0,
      draining: (index & 4) !== 0,
    })),
    ticketKeys,
    desired: () => ({ macs: [mac], versions: [{ ...version, initrdPath: null, commandLine: '' }] }),
    stock: (store) => {
      mkdirSync(store, { recursive: true })
      writeFileSync(path.join(store, 'disk'), disk)
      writeFileSync(path.join(store, 'kernel'), x86Kernel('6.1.0-53-amd64', patterned(20_000)))
    },
    start: (index, data) => {
      const pool = `10.78.0.${index + 1}0-10.78.0.${index + 1}9`
      const options = ['--data', data, '--json', '--listen', segment.edgeIpOf(index)]
      const dhcp = ['--dhcp', 'server', '--dhcp-pool', pool]
      const files = ['--boot-files', inScratch('boot-files')]
      return segment.startOnEdge(edgeProgram, ['serve', ...options, ...dhcp, ...files], index)
    },
  })
  await site.startAll()
}

/** Starts edges, one of which has the changed keys already while the others do not. */
const start = (count: number) =>
  startWith(Array.from({ length: count }, (_, index) => (index === 1 ? siteKeys(7, 6) : siteKeys(6, 7))))

/** Boots the device to its end, compares every byte with the disk, and calls `meanwhile` once the device reads it. */
async function boot(meanwhile: () => void | Promise<void>) {
  const { segment } = site
  const options = ['--server', segment.edgeIp, '--interface', segment.deviceInterface]
  const verify = ['--verify', inScratch('disk')]
  const booting = bootDevices(
    [...options, '--devices', '1', '--trace', inScratch('trace.csv'), '--breather-ms', '1', ...verify],
    (program, all) => segment.startOnSwitch(program, all),
  )
  await untilReading(booting)
  await meanwhile()
  const result = await booting
  const [device] = result.devices
  if (!device) throw new Error(result.output)
  return { ...device, output: result.output }
}

/** Resolves when the first edge has reported the start of the second stage. */
async function untilReading(booting: Promise<unknown>): Promise<void> {
  let isOver = false
  void booting.finally(() => {
    isOver = true
  })
  while (!site.boots(0).some(({ phases }) => phases.some(({ name }) => name === 'stage2'))) {
    if (isOver) throw new Error(`the boot ended before its second stage was reported: ${site.boots(0).map(summary)}`)
    await pause(20)
  }
}

/** The sudden failures of an edge. */
const fates = {
  killed: (index: number) => site.edge(index).kill('SIGKILL'),
  stopped: (index: number) => site.edge(index).kill('SIGSTOP'),
  'cut off': (index: number) => {
    const { command, args } = site.segment.onEdge('ip', ['link', 'set', 'edge0', 'down'], index)
    execFileSync(command, args)
  },
  'unable to read its disk': (index: number) => truncateSync(path.join(site.data(index), 'store', 'disk'), 4096),
}

/** The device failed over to this edge with every byte right, in one boot that keeps its times. */
async function expectFailover(device: Device, at: number): Promise<void> {
  expect(device.outcome, device.output).toBe('ready')
  expect(device.handOvers).toBe(1)
  expect(device.longestReadUs).toBeLessThan(busyMachineUs)
  const [first] = site.boots(0)
  const continued = await site.untilReported(at, ({ outcome }) => outcome !== undefined)
  const boots = site.indexes.map((index) => site.boots(index))
  expect(boots.map(({ length }) => length)).toEqual(boots.map((_, index) => (index === 0 || index === at ? 1 : 0)))
  expect(continued.id).toBe(first?.id)
  expect(continued.outcome).toEqual({ kind: 'ready' })
  expect(continued.handOver).toMatchObject({ number: 1, fromEdgeId: edgeIdOf(0) })
  expect(continued.revision).toBeGreaterThan(first?.revision ?? Number.POSITIVE_INFINITY)
  const timesOf = (boot: BootReport | undefined) =>
    boot?.phases
      .filter(({ name }) => !['stage2', 'ready'].includes(name))
      .map(({ name, startUs }) => ({ name, startUs }))
  expect(timesOf(continued)).toEqual(timesOf(first))
}

describe.skipIf(missing)(`a device whose edge disappears in mid-boot${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(() => {
    mkdirSync(inScratch('boot-files'))
    writeFileSync(inScratch('boot-files/undionly.kpxe'), patterned(50_000))
    writeFileSync(inScratch('disk'), disk)
    writeFileSync(inScratch('trace.csv'), `time_ms,offset,length\n${reads.join('\n')}\n`)
  })
  afterEach(async () => {
    await site.stop()
    site.segment.remove()
  })
  afterAll(() => scratch.remove())

  for (const [fate, strike] of Object.entries(fates)) {
    test(`fails over to the other edge when its own is ${fate}`, async () => {
      await start(2)
      await expectFailover(await boot(() => void strike(0)), 1)
      if (fate !== 'unable to read its disk') return
      expect(site.edge(0).output).toMatch(/version \S+ cannot be read at byte \d+ \(\d+ bytes\)/)
      // It is alive: it tells everybody who asks.
      const words = site.segment.onEdge('curl', ['-s', `http://${site.segment.edgeIp}:6980/healthz`], 0)
      expect(execFileSync(words.command, words.args, { encoding: 'utf8' })).toBe('degraded: store_damaged\n')
    })

    if (fate === 'unable to read its disk') continue
    test(`fails over to the last of four edges when the three before it are ${fate}`, async () => {
      await start(4)
      await expectFailover(await boot(() => [0, 1, 2].forEach(strike)), 3)
    })
  }

  // They accept it, since they have opened the version before.
  test('finds the one edge of four that is able to read its disk', async () => {
    await start(4)
    const device = await boot(() => [0, 1, 2].forEach(fates['unable to read its disk']))
    expect(device.outcome, device.output).toBe('ready')
    const continued = await site.untilReported(3, ({ outcome }) => outcome !== undefined)
    expect(continued.outcome).toEqual({ kind: 'ready' })
    expect(continued.id).toBe(site.boots(0)[0]?.id)
    expect(continued.handOver?.number).toBe(device.handOvers)
  })

  test('fails over to the last of seven edges when the six before it are stopped, and stays there when they continue', async () => {
    await start(7)
    const others = [0, 1, 2, 3, 4, 5]
    const device = await boot(() => others.forEach(fates.stopped))
    await expectFailover(device, 6)
    const saidOf = (index: number, what: string) =>
      new RegExp(`${edgeIdOf(index)} of this site is no longer heard[^]*${what}`)
    for (const index of others) await site.edge(6).waitFor(saidOf(index, ''))
    for (const index of others) site.edge(index).kill('SIGCONT')
    for (const index of others) await site.edge(6).waitFor(saidOf(index, `${edgeIdOf(index)} of this site is heard`))
    await expectFailover(device, 6)
    expect(site.boots(0)[0]?.outcome?.kind).not.toBe('failed')
  })

  test('is refused by a site with other keys, and continues when its own edge does', async () => {
    await startWith([siteKeys(6, 7), siteKeys(8, 9)])
    const device = await boot(async () => {
      fates.stopped(0)
      // Long enough for the device to have asked the other edge, which would have taken it by then.
      await pause(2500)
      site.edge(0).kill('SIGCONT')
    })
    expect(device.outcome, device.output).toBe('ready')
    expect(device.handOvers).toBe(0)
    expect(site.boots(1)).toEqual([])
  })
})
