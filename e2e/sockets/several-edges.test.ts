import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { DesiredState, SiteEdges } from '@bootfarm/proto/uplink'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { bootDevices } from '../lib/device/simulated-devices.ts'
import { bootsOf } from '../lib/edge/edge-data.ts'
import { type TestVersion, testUuid } from '../lib/edge/enrolled-edge.ts'
import { EnrolledSite, peerPort } from '../lib/edge/enrolled-site.ts'
import { patterned } from '../lib/edge/loopback-edge.ts'
import { x86Kernel } from '../lib/images/loader-files.ts'
import { edgeProgram, scratchDirectory, simProgram } from '../lib/lab/programs.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'
import { namespacesMissing, Segment } from '../lib/lab/segment.ts'

const deviceCount = 20
const sectors = 64
const macs = Array.from(
  { length: deviceCount },
  (_, index) => `02:bf:00:00:00:${(index + 1).toString(16).padStart(2, '0')}`,
)
const missing = namespacesMissing()
const scratch = scratchDirectory()
const trace = path.join(scratch.path, 'trace.csv')
let count = 0
let site: Site

/** Two edges that give addresses from a range each, and twenty simulated devices. */
class Site {
  readonly segment = new Segment('several', { edges: 2 })
  readonly edges: EnrolledSite

  /** @param change the differences of the two edges from ordinary ones */
  constructor(
    change: Partial<SiteEdges['edges'][number]>[] = [{}, {}],
    state: Partial<DesiredState> = {},
    given: Partial<TestVersion> = {},
  ) {
    this.edges = new EnrolledSite({
      segment: this.segment,
      folder: path.join(scratch.path, `site${count++}`),
      edges: change,
      desired: () => ({ macs, versions: macs.map(() => ({ ...version, ...given })) }),
      stock: stockStore,
      state,
      start: (index, data) =>
        this.segment.startOnEdge(
          edgeProgram,
          [
            'serve',
            '--data',
            data,
            '--json',
            '--listen',
            this.segment.edgeIpOf(index),
            '--dhcp',
            'server',
            '--dhcp-pool',
            `10.78.0.${index + 1}00-10.78.0.${index + 1}49`,
            '--boot-files',
            path.join(scratch.path, 'boot-files'),
          ],
          index,
        ),
    })
  }

  /** Boots all devices to their end. */
  async boot() {
    const result = await this.tryToBoot()
    expect(result.exit, result.output).toBe(0)
    expect(result.devices.map(({ outcome }) => outcome)).toEqual(Array(deviceCount).fill('ready'))
  }

  tryToBoot() {
    return bootDevices(
      [
        '--server',
        this.segment.edgeIpOf(0),
        '--interface',
        this.segment.deviceInterface,
        '--devices',
        String(deviceCount),
        '--trace',
        trace,
        '--speed',
        '0',
        '--breather-ms',
        '1',
      ],
      (program, all) => this.segment.startOnSwitch(program, all),
    )
  }

  /** Starts all devices, which boot when a magic packet wakes them. */
  asleep(): RunningProcess {
    return this.segment.startOnSwitch(simProgram, [
      'boot',
      '--json',
      '--server',
      this.segment.edgeIpOf(0),
      '--interface',
      this.segment.deviceInterface,
      '--devices',
      String(deviceCount),
      '--trace',
      trace,
      '--speed',
      '0',
      '--breather-ms',
      '1',
      '--asleep',
      '--wol-port',
      '9',
    ])
  }

  /** Returns what each edge has to report, after both have ended. */
  async reports() {
    for (const edge of [0, 1].map((index) => this.edges.edge(index)))
      if (edge.isRunning) expect(await edge.stop(), edge.output).toBe(0)
    return [0, 1].map((index) => this.edges.reports(index))
  }

  async boots() {
    return (await this.reports()).map(bootsOf)
  }

  /** Resolves once both edges have on their disks that all devices are ready: until then a killed one forgets it. */
  async untilKept() {
    const ready = () =>
      [0, 1].flatMap((index) => this.edges.boots(index)).filter(({ outcome }) => outcome?.kind === 'ready')
    while (ready().length < deviceCount) await pause(50)
  }

  async remove(): Promise<void> {
    await this.edges.stop()
    this.segment.remove()
  }
}

const version = {
  sizeBytes: sectors * 512,
  diskPath: 'disk',
  kernelPath: 'kernel',
  initrdPath: null,
  commandLine: '',
}

function stockStore(directory: string): void {
  mkdirSync(directory, { recursive: true })
  writeFileSync(path.join(directory, 'disk'), patterned(sectors * 512))
  writeFileSync(path.join(directory, 'kernel'), x86Kernel('6.1.0-53-amd64', patterned(20_000)))
}

const macsOf = (boots: { mac: string }[]) => boots.map(({ mac }) => mac).sort()

describe.skipIf(missing)(`two edges of one site${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(() => {
    mkdirSync(path.join(scratch.path, 'boot-files'))
    writeFileSync(path.join(scratch.path, 'boot-files', 'undionly.kpxe'), patterned(50_000))
    writeFileSync(trace, 'time_ms,offset,length\n0,0,4096\n')
  })
  afterEach(() => site.remove())
  afterAll(() => scratch.remove())

  test('share twenty devices: one edge answers each, and reports one boot for it', async () => {
    site = new Site()
    await site.edges.startAll()
    await site.boot()
    const [first = [], second = []] = await site.boots()
    expect(first.length).toBeGreaterThan(0)
    expect(second.length).toBeGreaterThan(0)
    const boots = [...first, ...second]
    expect(macsOf(boots)).toEqual(macs)
    expect(boots.map(({ outcome }) => outcome?.kind)).toEqual(Array(deviceCount).fill('ready'))
  })

  test('lose 5 % of the packets between them, and still no device has two boots', async () => {
    site = new Site()
    site.segment.loseAtEdges(5, peerPort)
    await site.edges.startAll()
    await site.boot()
    await site.boot()
    const boots = (await site.boots()).flat()
    const kinds = boots.map(({ outcome }) => outcome?.kind)
    expect(kinds).toEqual(Array(2 * deviceCount).fill('ready'))
    expect(macsOf(boots)).toEqual([...macs, ...macs].sort())
  })

  test('one is killed: the other takes its devices at once, and the killed one comes back without an extra boot', async () => {
    site = new Site()
    await site.edges.startAll()
    await site.boot()
    await site.untilKept()
    await site.edges.kill(0)
    // The other edge does not know it yet.
    await site.boot()
    await site.edges.start(0)
    await site.edges.untilAllHeard()
    const [first = [], second = []] = await site.boots()
    expect(macsOf([...first, ...second])).toEqual([...macs, ...macs].sort())
    expect(second.filter(({ outcome }) => outcome?.kind === 'ready').length).toBeGreaterThan(deviceCount)
    expect([...first, ...second].every(({ outcome }) => outcome?.kind === 'ready')).toBe(true)
  })

  test('run a schedule, and one dies just before: the other wakes each device, once', async () => {
    // Both edges have long started then.
    const instant = Date.now() + 20_000
    const run = { action: 'power_on', power: 'wake_on_lan', ratePerMinute: 300, instants: [instant] }
    const schedule = { ...run, id: testUuid(900), devices: macs.map((_, index) => index) }
    site = new Site([{}, {}], { issuedUnixMs: instant, schedules: [schedule] })
    await site.edges.startAll()
    const devices = site.asleep()
    // The other edge does not know it yet when the first devices are due: it takes 2 s at least to miss its neighbour.
    while (Date.now() < instant - 1500) await new Promise((wait) => setTimeout(wait, 50))
    await site.edges.kill(0)
    await devices.waitFor(new RegExp(`("outcome":"ready"[^]*){${deviceCount}}`))
    await devices.stop()
    const [first = [], second = []] = (await site.reports()).map((reports) =>
      reports.flatMap((one) => (one.type === 'schedule_run' ? one.run.devices : [])),
    )
    expect(first).toEqual([])
    const woken = second.map(({ deviceId, result }) => `${result} ${deviceId}`)
    expect(woken.sort()).toEqual(macs.map((_, index) => `sent ${testUuid(300 + index)}`).sort())
  })

  test('one is drained: it gets no new boot, and all of them where it is the only one left', async () => {
    site = new Site([{ draining: true }, {}])
    await site.edges.startAll()
    await site.boot()
    await site.edges.kill(1)
    await site.boot()
    const [draining = [], other = []] = await site.boots()
    expect(macsOf(other)).toEqual(macs)
    expect(macsOf(draining)).toEqual(macs)
  })

  test('one is near: subnets come before weights', async () => {
    site = new Site([{ subnets: ['10.78.0.0/24'], weight: 1 }, { weight: 100 }])
    await site.edges.startAll()
    await site.boot()
    const [near = [], other = []] = await site.boots()
    expect(macsOf(near)).toEqual(macs)
    expect(other).toEqual([])
  })

  test('one is the write owner: it alone boots the devices, and the other names it once it is dead', async () => {
    const homeEdges = [testUuid(2), testUuid(1)].map((id, index) => ({ id, name: `edge ${2 - index}` }))
    const given = { writeCache: { class: 'edge_persistent', full: 'stop' as const }, home: 0 }
    site = new Site([{}, { draining: true, weight: 1 }], { homeEdges }, given)
    await site.edges.startAll()
    await site.boot()
    await site.edges.kill(1)
    expect((await site.tryToBoot()).devices.map(({ outcome }) => outcome)).toEqual(Array(deviceCount).fill('failed'))
    const [other = [], home = []] = await site.boots()
    expect(macsOf(home)).toEqual(macs)
    expect(macsOf(other)).toEqual(macs)
    for (const { outcome } of other)
      expect(outcome).toMatchObject({
        kind: 'failed',
        cause: 'writes_at_another_edge',
        text: expect.stringContaining('kept at the edge edge 2'),
      })
  })
})
