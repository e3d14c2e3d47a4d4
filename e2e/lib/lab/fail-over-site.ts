import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { BootReport, SiteEdges } from '@bootfarm/proto/uplink'
import { bootDevices } from '../device/simulated-devices.ts'
import { testUuid, writeEnrolledEdge } from '../edge/enrolled-edge.ts'
import { patterned } from '../edge/loopback-edge.ts'
import { bootsOf, readReportLog } from '../edge/report-log.ts'
import { x86Kernel } from '../images/loader-files.ts'
import { edgeProgram } from './programs.ts'
import type { RunningProcess } from './running-process.ts'
import { Segment } from './segment.ts'

const mac = '02:bf:00:00:00:01'
const sectors = 8192
const disk = patterned(sectors * 512)
/** One after the other, so that the second stage goes on for five seconds without any trouble. */
const reads = Array.from({ length: 250 }, (_, index) => `${index * 20},${(index % 100) * 32768},32768`)
const key = (number: number) => Buffer.alloc(32, number).toString('base64')
let count = 0

export const edgeIdOf = (index: number) => testUuid(index + 1)

/** A simulated device as its program prints it when it is done. */
export type FailOverDevice = Awaited<ReturnType<FailOverSite['boot']>>

/**
 * Edges of one site and a device that boots at the first of them; their control plane is away. In the order of PEERS.md each one comes
 * before the next, for any device: what it prefers in an edge (near, with a weight, not draining) they have less and less of.
 */
export class FailOverSite {
  readonly segment: Segment
  readonly edges: RunningProcess[]
  readonly #folder: string
  readonly #data: string[]

  /** @param ticketKeys of each edge @param scratch a directory for all sites of a test file */
  constructor(scratch: string, ticketKeys: string[][]) {
    this.segment = new Segment('failover', { edges: ticketKeys.length })
    this.#folder = path.join(scratch, `site${count++}`)
    const edges = ticketKeys.map((_, index) => ({
      id: edgeIdOf(index),
      address: this.segment.edgeIpOf(index),
      peerPort: 6911,
      streamPort: 6910,
      subnets: (index & 1) === 0 ? ['10.78.0.0/24'] : [],
      weight: (index & 2) === 0 ? 10 : 0,
      draining: (index & 4) !== 0,
    }))
    this.#data = edges.map(({ id }, index) => {
      const data = path.join(this.#folder, `edge${index}`)
      mkdirSync(path.join(data, 'store'), { recursive: true })
      writeFileSync(path.join(data, 'store', 'disk'), disk)
      writeFileSync(path.join(data, 'store', 'kernel'), x86Kernel('6.1.0-53-amd64', patterned(20_000)))
      const siteEdges: SiteEdges = { key: key(5), ticketKeys: ticketKeys[index] ?? [], edges }
      const version = { sizeBytes: sectors * 512, diskPath: 'disk', kernelPath: 'kernel' }
      const versions = [{ ...version, initrdPath: null, commandLine: '' }]
      writeEnrolledEdge(data, [mac], versions, [], undefined, { edgeId: id, siteEdges })
      return data
    })
    mkdirSync(path.join(this.#folder, 'boot-files'))
    writeFileSync(path.join(this.#folder, 'boot-files', 'undionly.kpxe'), patterned(50_000))
    writeFileSync(this.#trace, `time_ms,offset,length\n${reads.join('\n')}\n`)
    this.edges = this.#data.map((data, index) => {
      const pool = `10.78.0.${index + 1}0-10.78.0.${index + 1}9`
      const options = ['--data', data, '--json', '--listen', this.segment.edgeIpOf(index)]
      const dhcp = ['--dhcp', 'server', '--dhcp-pool', pool]
      const files = ['--boot-files', path.join(this.#folder, 'boot-files')]
      return this.segment.startOnEdge(edgeProgram, ['serve', ...options, ...dhcp, ...files], index)
    })
  }

  get #trace(): string {
    return path.join(this.#folder, 'trace.csv')
  }

  /** Each one hears all others. */
  async untilServing(): Promise<void> {
    for (const [index, edge] of this.edges.entries())
      for (const other of this.edges.keys())
        if (other !== index) await edge.waitFor(new RegExp(`${edgeIdOf(other)} of this site is heard`))
  }

  /** Boots the device to its end, every byte compared with the disk, and does something once it reads that. */
  async boot(meanwhile: () => void | Promise<void>) {
    const options = ['--server', this.segment.edgeIpOf(0), '--interface', this.segment.deviceInterface]
    const verify = ['--verify', path.join(this.#data[0] ?? '', 'store', 'disk')]
    const booting = bootDevices(
      [...options, '--devices', '1', '--trace', this.#trace, '--breather-ms', '1', ...verify],
      (program, all) => this.segment.startOnSwitch(program, all),
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

/** Two keys of a site, or of another one, as the control plane gives them. */
export const siteKeys = (first: number, second: number) => [key(first), key(second)]
