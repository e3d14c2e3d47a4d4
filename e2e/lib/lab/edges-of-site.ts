import { copyFileSync, mkdirSync, statSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { BootReport, DesiredState, SiteEdges } from '@bootfarm/proto/uplink'
import { macOf } from '../device/machine.ts'
import { testUuid, writeEnrolledEdge } from '../edge/enrolled-edge.ts'
import { bootsOf, readReportLog } from '../edge/report-log.ts'
import type { MachineSite } from './machine-site.ts'
import { scratchDirectory } from './programs.ts'
import type { RunningProcess } from './running-process.ts'

export interface EdgesOptions {
  /** Goes before what the machine's console needs. */
  commandLine?: string
  writeCache?: DesiredState['vdisks'][number]['writeCache']
  /** The second edge has no version and no device. */
  otherIsEmpty?: boolean
}

export const edgeIdOf = (index: number) => testUuid(index + 1)
const key = (number: number) => Buffer.alloc(32, number).toString('base64')

/**
 * Two edges of a machine site that have the same version; their control plane is away. The first one answers machines that start: the
 * other one takes no new boots while it is there.
 */
export class EdgesOfSite {
  readonly #site: MachineSite
  readonly #scratch = scratchDirectory()
  readonly #edges: (RunningProcess | undefined)[] = []

  constructor(site: MachineSite, { commandLine = '', writeCache, otherIsEmpty }: EdgesOptions = {}) {
    this.#site = site
    const edges = [false, true].map((draining, index) => ({
      id: edgeIdOf(index),
      weight: 10,
      subnets: [],
      draining,
      address: site.segment.edgeIpOf(index),
      peerPort: 6911,
      streamPort: 6910,
    }))
    const siteEdges: SiteEdges = { key: key(5), ticketKeys: [key(6), key(7)], edges }
    const version = {
      sizeBytes: statSync(site.disk.image).size,
      diskPath: 'disk',
      kernelPath: 'kernel',
      initrdPath: 'initrd',
      commandLine: `${commandLine} ${site.commandLine}`.trim(),
      ...(writeCache ? { writeCache } : {}),
    }
    for (const { id: edgeId, draining: isOther } of edges) {
      const store = path.join(this.#data(edgeId), 'store')
      mkdirSync(store, { recursive: true })
      copyFileSync(site.disk.image, path.join(store, 'disk'))
      copyFileSync(site.kernel, path.join(store, 'kernel'))
      copyFileSync(site.initrd, path.join(store, 'initrd'))
      const isEmpty = otherIsEmpty && isOther
      const [macs, versions] = isEmpty ? [[], []] : [[macOf(0)], [version]]
      writeEnrolledEdge(this.#data(edgeId), macs, versions, [], undefined, { edgeId, siteEdges })
    }
  }

  /** Starts an edge, or starts it again with the data that it has. */
  async start(index: number): Promise<void> {
    this.#edges[index] = await this.#site.startEdgeOfSite(index, this.#data(edgeIdOf(index)))
  }

  async startBoth(): Promise<void> {
    for (const index of [0, 1]) await this.start(index)
    for (const index of [0, 1]) await this.get(index).waitFor(othersHeard)
  }

  get(index: number): RunningProcess {
    const edge = this.#edges[index]
    if (!edge) throw new Error(`edge ${index} was not started`)
    return edge
  }

  /** As the machine's console names it. */
  nameOf(index: number): string {
    return `${this.#site.segment.edgeIpOf(index)}:6910`
  }

  /** What the edge says about the other one from now on: that it hears it. */
  async untilHeardAgain(index: number): Promise<void> {
    const edge = this.get(index)
    const before = edge.output.length
    await edge.waitUntil('that the other edge is heard', () =>
      othersHeard.test(edge.output.slice(before)) ? true : undefined,
    )
  }

  /** What an edge has to report. */
  boots(index: number): BootReport[] {
    return bootsOf(readReportLog(this.#data(edgeIdOf(index))))
  }

  /** Waits until an edge has one boot to report, which fits; not everything that it has to report is printed, too. */
  async untilReported(index: number, fits: (boot: BootReport) => boolean): Promise<BootReport> {
    const until = performance.now() + reportLimitMs
    for (;;) {
      const [boot, ...more] = this.boots(index)
      if (boot && more.length === 0 && fits(boot)) return boot
      if (performance.now() > until)
        throw new Error(`edge ${index} has only this to report: ${JSON.stringify([boot, ...more])}`)
      await pause(50)
    }
  }

  async stop(): Promise<void> {
    for (const edge of this.#edges) {
      edge?.kill('SIGCONT')
      await edge?.stop()
    }
    this.#edges.length = 0
  }

  async remove(): Promise<void> {
    await this.stop()
    this.#scratch.remove()
  }

  #data(edgeId: string): string {
    return path.join(this.#scratch.path, edgeId)
  }
}

/** A device reports every 5 s. */
const reportLimitMs = 30_000
const othersHeard = /of this site is heard/
