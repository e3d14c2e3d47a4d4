import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { BootReport, SiteEdges } from '@bootfarm/proto/uplink'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { bootDevices } from '../lib/boot-result.ts'
import { EdgesSegment } from '../lib/edges-segment.ts'
import { testUuid, writeEnrolledEdge } from '../lib/enrolled-edge.ts'
import { x86Kernel } from '../lib/loader-files.ts'
import { patterned } from '../lib/loopback-edge.ts'
import { edgeProgram, scratchDirectory } from '../lib/programs.ts'
import { bootsOf, readReportLog } from '../lib/report-log.ts'
import { RunningProcess } from '../lib/running-process.ts'
import { namespacesMissing } from '../lib/segment.ts'

const mac = '02:bf:00:00:00:01'
const sectors = 8192
const disk = patterned(sectors * 512)
/** One after the other, so that the second stage goes on for five seconds without any trouble. */
const reads = Array.from({ length: 250 }, (_, index) => `${index * 20},${(index % 100) * 32768},32768`)
const goalUs = 3_000_000
const missing = namespacesMissing()
const scratch = scratchDirectory()
const trace = path.join(scratch.path, 'trace.csv')
const diskFile = path.join(scratch.path, 'disk')
const key = (number: number) => Buffer.alloc(32, number).toString('base64')
let count = 0
let site: Site

/** Two edges of one site. The first one answers: the other one takes no new boots while it is there. */
class Site {
  readonly segment = new EdgesSegment(`${process.pid}f${count++}`, 2)
  readonly edges: RunningProcess[]
  readonly #data: string[]

  constructor(
    ticketKeys: string[][] = [
      [key(6), key(7)],
      [key(7), key(6)],
    ],
  ) {
    const edges = [false, true].map((draining, index) => ({
      ...{ id: testUuid(index + 1), weight: 10, subnets: [], draining },
      ...{ address: this.segment.edgeIp(index), peerPort: 6911, streamPort: 6910 },
    }))
    this.#data = edges.map(({ id }, index) => {
      const data = path.join(scratch.path, `site${count}`, `edge${index}`)
      mkdirSync(path.join(data, 'store'), { recursive: true })
      writeFileSync(path.join(data, 'store', 'disk'), disk)
      writeFileSync(path.join(data, 'store', 'kernel'), x86Kernel('6.1.0-53-amd64', patterned(20_000)))
      const siteEdges: SiteEdges = { key: key(5), ticketKeys: ticketKeys[index] ?? [], edges }
      const version = { sizeBytes: sectors * 512, diskPath: 'disk', kernelPath: 'kernel' }
      const versions = [{ ...version, initrdPath: null, commandLine: '' }]
      writeEnrolledEdge(data, [mac], versions, [], undefined, { edgeId: id, siteEdges })
      return data
    })
    this.edges = this.#data.map((data, index) => {
      const ip = this.segment.edgeIp(index)
      const pool = `10.77.0.${index + 1}00-10.77.0.${index + 1}49`
      const options = ['--data', data, '--json', '--listen', ip, '--dhcp', 'server', '--dhcp-pool', pool]
      const files = ['--boot-files', path.join(scratch.path, 'boot-files')]
      return new RunningProcess(...this.segment.onEdge(index, edgeProgram, 'serve', ...options, ...files))
    })
  }

  async untilServing(): Promise<void> {
    for (const edge of this.edges) await edge.waitFor(/of this site is heard/)
  }

  /** Boots the device to its end, and does something once it reads its disk. */
  async boot(meanwhile: () => void | Promise<void>) {
    const options = ['--server', this.segment.edgeIp(0), '--interface', this.segment.deviceInterface]
    const booting = bootDevices(
      [...options, '--devices', '1', '--trace', trace, '--breather-ms', '1', '--verify', diskFile],
      (command, ...args) => this.segment.onDevices(command, ...args),
    )
    await this.#untilReading(booting)
    await meanwhile()
    const result = await booting
    const [device] = result.devices
    if (!device) throw new Error(result.output)
    return { ...device, output: result.output }
  }

  /** The first edge has reported that the second stage goes on. */
  async #untilReading(booting: Promise<unknown>): Promise<void> {
    let isOver = false
    void booting.finally(() => {
      isOver = true
    })
    while (!this.boots(0).some(({ phases }) => phases.some(({ name }) => name === 'stage2'))) {
      if (isOver) throw new Error('the boot ended before its second stage was reported')
      await pause(20)
    }
  }

  /** What an edge has to report. */
  boots(index: number): BootReport[] {
    return bootsOf(readReportLog(this.#data[index] ?? ''))
  }

  async remove(): Promise<void> {
    for (const edge of this.edges) {
      edge.kill('SIGCONT')
      await edge.stop()
    }
    this.segment.remove()
  }
}

/** It went on at the second edge, all bytes right, as one boot with the times that it had. */
function expectHandOver(device: Awaited<ReturnType<Site['boot']>>): void {
  expect(device.outcome, device.output).toBe('ready')
  expect(device.handOvers).toBe(1)
  expect(device.longestReadUs).toBeLessThan(goalUs)
  const [first] = site.boots(0)
  const [second, ...more] = site.boots(1)
  expect(more).toEqual([])
  expect(second?.id).toBe(first?.id)
  expect(second?.outcome).toEqual({ kind: 'ready' })
  expect(second?.handOver).toMatchObject({ number: 1, fromEdgeId: testUuid(1) })
  expect(second?.revision).toBeGreaterThan(first?.revision ?? Number.POSITIVE_INFINITY)
  const timesOf = (boot: BootReport | undefined) =>
    boot?.phases
      .filter(({ name }) => !['stage2', 'ready'].includes(name))
      .map(({ name, startUs }) => ({ name, startUs }))
  expect(timesOf(second)).toEqual(timesOf(first))
}

describe.skipIf(missing)(`a device whose edge goes in mid-boot${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(() => {
    mkdirSync(path.join(scratch.path, 'boot-files'))
    writeFileSync(path.join(scratch.path, 'boot-files', 'undionly.kpxe'), patterned(50_000))
    writeFileSync(trace, `time_ms,offset,length\n${reads.join('\n')}\n`)
    writeFileSync(diskFile, disk)
  })
  afterEach(() => site.remove())
  afterAll(() => scratch.remove())

  test('goes on at the other edge when its own is killed', async () => {
    site = new Site()
    await site.untilServing()
    expectHandOver(
      await site.boot(() => {
        site.edges[0]?.kill('SIGKILL')
      }),
    )
  })

  test('goes on at the other edge when its own is stopped, which later changes nothing of it', async () => {
    site = new Site()
    await site.untilServing()
    expectHandOver(
      await site.boot(() => {
        site.edges[0]?.kill('SIGSTOP')
      }),
    )
    site.edges[0]?.kill('SIGCONT')
    await site.edges[0]?.waitFor(/is heard/)
    expect(site.boots(0)).toHaveLength(1)
    expect(site.boots(0)[0]?.outcome?.kind).not.toBe('failed')
  })

  test('goes on at the other edge when its own is cut off', async () => {
    site = new Site()
    await site.untilServing()
    const [command, args] = site.segment.onEdge(0, 'ip', 'link', 'set', 'edge0', 'down')
    expectHandOver(
      await site.boot(() => {
        execFileSync(command, args)
      }),
    )
  })

  test('is refused where the site has other keys, and goes on when its own edge does', async () => {
    site = new Site([[key(6), key(7)], [key(8)]])
    await site.untilServing()
    const device = await site.boot(async () => {
      site.edges[0]?.kill('SIGSTOP')
      // Long enough for it to have asked the other edge, which would have taken it by then.
      await pause(2500)
      site.edges[0]?.kill('SIGCONT')
    })
    expect(device.outcome, device.output).toBe('ready')
    expect(device.handOvers).toBe(0)
    expect(site.boots(1)).toEqual([])
  })
})
