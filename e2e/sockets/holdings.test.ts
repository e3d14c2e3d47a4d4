import { mkdirSync, truncateSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { bootDevices } from '../lib/device/simulated-devices.ts'
import { EnrolledSite, edgeIdOf, siteKeys } from '../lib/edge/enrolled-site.ts'
import { patterned } from '../lib/edge/loopback-edge.ts'
import { x86Kernel } from '../lib/images/loader-files.ts'
import { edgeProgram, scratchDirectory, simProgram } from '../lib/lab/programs.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'
import { namespacesMissing, Segment } from '../lib/lab/segment.ts'

const missing = namespacesMissing()
const first = '02:bf:00:00:00:01'
const second = '02:bf:00:00:00:02'
const macs = [first, second]
const sectors = 8192
const disk = patterned(sectors * 512)
/** One after the other, so that the second stage lasts five seconds without any trouble. */
const reads = Array.from({ length: 100 }, (_, index) => `${index * 50},${index * 32768},32768`)
const scratch = scratchDirectory()
const inScratch = (name: string) => path.join(scratch.path, name)
let site: EnrolledSite
let siteCount = 0

const fileOf = (index: number, name: string) => path.join(site.data(index), 'store', name)

/** The first edge comes before the second one for every device: it is near. */
async function startSite(holders: number[]): Promise<void> {
  const segment = new Segment('holdings', { edges: 2 })
  const version = { sizeBytes: sectors * 512, diskPath: 'disk', kernelPath: 'kernel', initrdPath: null }
  site = new EnrolledSite({
    segment,
    folder: inScratch(`site${siteCount++}`),
    edges: [{ subnets: [segment.subnet] }, {}],
    ticketKeys: [siteKeys(6, 7), siteKeys(6, 7)],
    desired: () => ({ macs, versions: macs.map(() => ({ ...version, commandLine: '' })) }),
    stock: (store) => {
      mkdirSync(store, { recursive: true })
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
  for (const index of holders) writeFileSync(fileOf(index, 'disk'), disk)
  await site.startAll()
}

/** Devices that compare what they read with the disk. */
function deviceOptions(mac: string, trace: string): string[] {
  const { segment } = site
  const options = ['--server', segment.edgeIp, '--interface', segment.deviceInterface, '--verify', inScratch('disk')]
  return [...options, '--first-mac', mac, '--breather-ms', '1', '--trace', inScratch(trace)]
}

/** Boots one device to its end. */
const boot = (mac: string, trace: string) =>
  bootDevices(['--devices', '1', ...deviceOptions(mac, trace)], (program, all) =>
    site.segment.startOnSwitch(program, all),
  )

/**
 * Boots the first device, and the second one 25 s later. Both run on. Meanwhile an edge looks for versions that it
 * lacks, every 10 s, and the first device reports, every 5 s: the answer tells it of edges that have its version.
 */
function run(): RunningProcess {
  const stays = ['--devices', '2', '--waves', '--wave-size', '1', '--wave-interval-s', '25', '--json']
  return site.segment.startOnSwitch(simProgram, ['boot', ...deviceOptions(first, 'short.csv'), ...stays])
}

async function until(what: () => boolean, device: Promise<unknown>): Promise<void> {
  let isOver = false
  void device.finally(() => {
    isOver = true
  })
  while (!what()) {
    if (isOver) throw new Error('the device ended before')
    await pause(20)
  }
}

const isReadingAt = (index: number) =>
  site.boots(index).some(({ phases }) => phases.some(({ name }) => name === 'stage2'))

describe.skipIf(missing)(`two edges, one of which has the version${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(() => {
    mkdirSync(inScratch('boot-files'))
    writeFileSync(inScratch('boot-files/undionly.kpxe'), patterned(50_000))
    writeFileSync(inScratch('disk'), disk)
    writeFileSync(inScratch('long.csv'), `time_ms,offset,length\n${reads.join('\n')}\n`)
    writeFileSync(inScratch('short.csv'), 'time_ms,offset,length\n0,0,32768\n')
  })
  afterEach(async () => {
    await site.stop()
    site.segment.remove()
  })
  afterAll(() => scratch.remove())

  test('it boots the devices; the other one gets the version, and then continues what runs there', async () => {
    await startSite([1])
    const devices = run()
    await until(() => site.boots(1).some(({ outcome }) => outcome?.kind === 'ready'), devices.ended)
    expect(site.boots(0)).toEqual([])
    writeFileSync(fileOf(0, 'disk'), disk)
    await until(() => site.boots(0).some(({ mac }) => mac === second), devices.ended)
    expect(site.boots(1).map(({ mac }) => mac)).not.toContain(second)
    await site.kill(1)
    const continued = () => site.boots(0).find(({ mac }) => mac === first)
    await until(() => continued() !== undefined, devices.ended)
    await devices.stop()
    expect(continued()).toMatchObject({ outcome: { kind: 'ready' }, handOver: { number: 1, fromEdgeId: edgeIdOf(1) } })
  })

  test('it boots the devices of one whose version is damaged', async () => {
    await startSite([0, 1])
    const booting = boot(first, 'long.csv')
    await until(() => isReadingAt(0), booting)
    truncateSync(fileOf(0, 'disk'), 4096)
    const moved = await booting
    expect(moved.devices, moved.output).toMatchObject([{ outcome: 'ready', handOvers: 1 }])
    const next = await boot(first, 'short.csv')
    expect(next.devices, next.output).toMatchObject([{ outcome: 'ready', handOvers: 0 }])
    expect(site.boots(0).length).toBe(1)
  })

  test('it dies: the other one answers, and names what it lacks', async () => {
    await startSite([1])
    const served = await boot(first, 'short.csv')
    expect(served.devices, served.output).toMatchObject([{ outcome: 'ready' }])
    expect(site.boots(0)).toEqual([])
    await site.kill(1)
    await site.untilMissed(0)
    const refused = await boot(second, 'short.csv')
    expect(refused.devices, refused.output).toMatchObject([{ outcome: 'failed' }])
    const failed = await site.untilReported(0, ({ outcome }) => outcome !== undefined)
    expect(failed.outcome).toMatchObject({ kind: 'failed', cause: 'version_missing' })
  })
})
