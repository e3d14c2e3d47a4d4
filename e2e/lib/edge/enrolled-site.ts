import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { BootReport, DesiredState, Report, SiteEdges } from '@bootfarm/proto/uplink'
import type { RunningProcess } from '../lab/running-process.ts'
import type { Segment } from '../lab/segment.ts'
import { bootsOf, readReportLog } from './edge-data.ts'
import { type TestVersion, testUuid, writeEnrolledEdge } from './enrolled-edge.ts'

/** A device reports every 5 s. */
const reportLimitMs = 120_000
const key = (number: number) => Buffer.alloc(32, number).toString('base64')

export const peerPort = 6911
export const edgeIdOf = (index: number) => testUuid(index + 1)
/** Returns two ticket keys of a site, as the control plane hands them out. */
export const siteKeys = (first: number, second: number) => [key(first), key(second)]

export interface EnrolledSiteOptions {
  segment: Segment
  /** Holds the edges' data. */
  folder: string
  /** The differences of each edge from an ordinary one. */
  edges: Partial<SiteEdges['edges'][number]>[]
  /** For each edge; without them the site has no fail-over. */
  ticketKeys?: string[][]
  /** What each edge serves: device `macs[i]` boots `versions[i]`. */
  desired: (index: number) => { macs: string[]; versions: TestVersion[] }
  /** Fills an edge's store. */
  stock: (store: string) => void
  /** Changes the state of every edge. */
  state?: Partial<DesiredState>
  /** Starts an edge with its data. */
  start: (index: number, data: string) => RunningProcess | Promise<RunningProcess>
}

/** The edges of one site, which have enrolled before; their control plane is away. */
export class EnrolledSite {
  readonly segment: Segment
  readonly #data: string[]
  readonly #start: EnrolledSiteOptions['start']
  readonly #edges: (RunningProcess | undefined)[] = []

  constructor({ segment, folder, edges, ticketKeys, desired, stock, state, start }: EnrolledSiteOptions) {
    this.segment = segment
    this.#start = start
    const known = edges.map((own, index) => ({
      id: edgeIdOf(index),
      weight: 10,
      subnets: [],
      draining: false,
      address: segment.edgeIpOf(index),
      peerPort,
      ...(ticketKeys ? { streamPort: 6910 } : {}),
      ...own,
    }))
    this.#data = known.map(({ id: edgeId }, index) => {
      const data = path.join(folder, `edge${index}`)
      stock(path.join(data, 'store'))
      const siteEdges: SiteEdges = { key: key(5), edges: known }
      if (ticketKeys) siteEdges.ticketKeys = ticketKeys[index] ?? []
      const { macs, versions } = desired(index)
      writeEnrolledEdge(data, macs, versions, [], undefined, { edgeId, siteEdges, ...state })
      return data
    })
  }

  get indexes(): number[] {
    return [...this.#data.keys()]
  }

  /** Starts an edge; one that ran before keeps its data. */
  async start(index: number): Promise<void> {
    this.#edges[index] = await this.#start(index, this.#data[index] ?? '')
  }

  /** Resolves when each edge hears all others, and knows what they hold: until then two may answer one device. */
  async startAll(): Promise<void> {
    for (const index of this.#data.keys()) await this.start(index)
    await this.untilAllHeard()
  }

  async untilAllHeard(): Promise<void> {
    for (const index of this.#data.keys())
      for (const other of this.#data.keys()) if (other !== index) await this.#untilKnown(index, other)
  }

  async #untilKnown(index: number, other: number): Promise<void> {
    const edge = this.edge(index)
    for (const said of ['is heard', 'has told which versions it holds'])
      await edge.waitFor(new RegExp(`${edgeIdOf(other)} of this site ${said}`))
  }

  edge(index: number): RunningProcess {
    const edge = this.#edges[index]
    if (!edge) throw new Error(`edge ${index} was not started`)
    return edge
  }

  async kill(index: number): Promise<void> {
    this.edge(index).kill('SIGKILL')
    await this.edge(index).ended
  }

  /** An edge's data directory. */
  data(index: number): string {
    return this.#data[index] ?? ''
  }

  /** The edge's stream, as a machine's console names it. */
  nameOf(index: number): string {
    return `${this.segment.edgeIpOf(index)}:6910`
  }

  /**
   * Resolves when an edge has reported that it no longer hears another one: a short pause of that one is not noticed.
   */
  async untilMissed(index: number): Promise<void> {
    const edge = this.edge(index)
    await edge.waitUntil('that the other edge is not heard any more', () =>
      edge.output.lastIndexOf('of this site is no longer heard') > edge.output.lastIndexOf('of this site is heard')
        ? true
        : undefined,
    )
  }

  /** Resolves when an edge reports again that it hears another one, after `untilMissed`. */
  async untilHeardAgain(index: number): Promise<void> {
    const edge = this.edge(index)
    const before = edge.output.length
    await edge.waitUntil('that the other edge is heard', () =>
      /of this site is heard/.test(edge.output.slice(before)) ? true : undefined,
    )
  }

  /** Everything that an edge has to report. */
  reports(index: number): Report[] {
    return readReportLog(this.data(index))
  }

  /** The boots that an edge has to report. */
  boots(index: number): BootReport[] {
    return bootsOf(this.reports(index))
  }

  /**
   * Waits until an edge has exactly one boot to report, and it fits. An edge does not print everything that it reports.
   */
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

  /**
   * Stops the edges, also those that a test has paused with SIGSTOP; returns the exit code of each that was started.
   */
  async stop(): Promise<(number | string)[]> {
    const codes: (number | string)[] = []
    for (const edge of this.#edges) {
      edge?.kill('SIGCONT')
      if (edge) codes.push(await edge.stop())
    }
    return codes
  }
}
