import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { createPerson, createTenant, makeJoinToken, type TestTenant } from '@bootfarm/api/testing/tenant'
import { createDb } from '@bootfarm/db'
import type { DesiredState } from '@bootfarm/proto/uplink'
import { freePorts } from '../../../scripts/lib/free-ports.mjs'
import { ApiClient } from '../control-plane/api-client.ts'
import { x86Kernel } from '../images/loader-files.ts'
import { edgeProgram, simProgram } from '../lab/programs.ts'
import { RunningProcess } from '../lab/running-process.ts'
import { readDesiredState } from './edge-data.ts'
import {
  type EdgePorts,
  edgeAddress,
  edgeFigures,
  edgePorts,
  patterned,
  portArguments,
  trustLoopback,
  untilListening,
} from './loopback-edge.ts'
import { UplinkRelay } from './uplink-relay.ts'

const sectors = 64
/** The disk that its devices boot. */
export const siteDisk = patterned(sectors * 512)

export interface ControlPlane {
  /** For the database's owner. */
  databaseUrl: string
  apiUrl: string
  /** The URLs of all its API processes, where there are several. */
  apiUrls?: string[]
  /** The dashboard's URL, or the API's without a dashboard. */
  webUrl: string
}

export interface SimulatedBoot {
  mac: string
  outcome: string
}

export interface PrintedBoot {
  id: string
  outcome: { kind: string }
  handOver?: { fromEdgeId: string }
}

/** A real edge in its own organization, with simulated devices. */
export class ControlledEdge {
  readonly tenant: TestTenant
  /** The person that `api` is signed in as. */
  readonly person: { email: string; password: string }
  readonly api: ApiClient
  readonly uplink: UplinkRelay
  readonly data: string
  readonly edgeId: string
  process: RunningProcess
  /** Printed by its earlier processes. */
  #printed: PrintedBoot[] = []
  readonly ports: EdgePorts
  readonly #metricsPort: number
  readonly #folder: string
  readonly #options: string[]

  private constructor(made: {
    tenant: TestTenant
    person: { email: string; password: string }
    api: ApiClient
    uplink: UplinkRelay
    ports: EdgePorts
    metricsPort: number
    folder: string
    options: string[]
  }) {
    this.tenant = made.tenant
    this.person = made.person
    this.api = made.api
    this.uplink = made.uplink
    this.ports = made.ports
    this.#metricsPort = made.metricsPort
    this.#folder = made.folder
    this.#options = made.options
    this.data = path.join(made.folder, 'edge')
    this.edgeId = (JSON.parse(readFileSync(path.join(this.data, 'identity.json'), 'utf8')) as { edgeId: string }).edgeId
    this.process = this.#spawn()
  }

  /**
   * @param options further options of `serve`
   * @param beside an edge whose site this one joins, or its tenant with another site of the organization
   */
  static async start(
    plane: ControlPlane,
    folder: string,
    options: string[] = [],
    beside?: Pick<ControlledEdge, 'tenant' | 'person'>,
  ): Promise<ControlledEdge> {
    const db = createDb(plane.databaseUrl)
    const clock = { now: new Date(), advance: () => {}, read: () => new Date() }
    const { tenant, person } = beside ?? (await makeSite(db, clock))
    const joinToken = await makeJoinToken({ db, clock }, tenant)
    await db.$disconnect()
    const api = await ApiClient.signIn(plane.webUrl, person.email, person.password)
    const uplink = new UplinkRelay(...(plane.apiUrls ?? [plane.apiUrl]))
    await uplink.open()
    writeSiteFiles(folder)
    const enrolment = new RunningProcess(edgeProgram, [
      'enrol',
      '--url',
      uplink.url,
      '--token',
      joinToken,
      '--data',
      path.join(folder, 'edge'),
    ])
    if ((await enrolment.ended) !== 0) throw new Error(enrolment.output)
    const [metricsPort = 0] = await freePorts(1)
    const ports = await edgePorts()
    const edge = new ControlledEdge({ tenant, person, api, uplink, folder, options, ports, metricsPort })
    await edge.#listens()
    return edge
  }

  /** Where devices reach it. */
  get httpUrl(): string {
    return `http://${edgeAddress}:${this.ports.http}`
  }

  #spawn(): RunningProcess {
    return new RunningProcess(edgeProgram, [
      'serve',
      '--listen',
      edgeAddress,
      '--dhcp',
      'server',
      '--dhcp-pool',
      '127.77.9.10-127.77.9.99',
      ...trustLoopback,
      ...portArguments(this.ports),
      '--metrics',
      String(this.#metricsPort),
      '--data',
      this.data,
      '--boot-files',
      path.join(this.#folder, 'boot-files'),
      ...this.#options,
    ])
  }

  /** Kills it with SIGKILL and starts it again. */
  async restart(): Promise<void> {
    this.process.kill('SIGKILL')
    await this.process.ended
    this.#printed.push(...this.process.jsonLines<PrintedBoot>())
    this.process = this.#spawn()
    await this.#listens()
  }

  /** The iPXE script that a device of this address gets; fails with the edge's output where there is no answer. */
  async scriptOf(mac: string): Promise<string> {
    const begun = performance.now()
    try {
      return await (await fetch(`${this.httpUrl}/m/${mac}/boot.ipxe`)).text()
    } catch (cause) {
      const after = `after ${Math.round(performance.now() - begun)} ms`
      const { isRunning, output } = this.process
      throw new Error(`no script ${after}; the edge ${isRunning ? 'runs' : 'has ended'}:\n${output}`, { cause })
    }
  }

  /** The port of metrics opens last. */
  async #listens(): Promise<void> {
    await untilListening(this.process, this.ports.http)
    await untilListening(this.process, this.#metricsPort)
  }

  /** The state that it acts on; undefined before its first one, and for a moment while it takes another. */
  async stateInForce(): Promise<DesiredState | undefined> {
    if (!existsSync(path.join(this.data, 'state.json'))) return undefined
    const state = readDesiredState(this.data)
    const figures = await edgeFigures(this.#metricsPort)
    const isInForce =
      figures.bootfarm_edge_state_incarnation === state.incarnation &&
      figures.bootfarm_edge_state_counter === state.counter
    return isInForce ? state : undefined
  }

  /** The page that Prometheus reads. */
  get metricsUrl(): string {
    return `http://${edgeAddress}:${this.#metricsPort}/metrics`
  }

  async metrics(): Promise<string> {
    return (await fetch(this.metricsUrl)).text()
  }

  /** With `--json`: the finished boots by id, each as printed last. They were in its log before. */
  printedBoots(): Map<string, PrintedBoot> {
    const printed = [...this.#printed, ...this.process.jsonLines<PrintedBoot>()]
    return new Map(printed.map((boot) => [boot.id, boot]))
  }

  /** Boots all devices once, together; resolves when each is ready or has failed. */
  async boots(): Promise<SimulatedBoot[]> {
    const devices = new RunningProcess(simProgram, this.deviceArguments())
    await devices.ended
    const boots = devices.jsonLines<SimulatedBoot>().filter(({ mac }) => mac !== undefined)
    // The simulator prints them as they end.
    return boots.sort((a, b) => a.mac.localeCompare(b.mac))
  }

  deviceArguments(): string[] {
    const trace = path.join(this.#folder, 'trace.csv')
    return [
      'boot',
      '--json',
      '--server',
      edgeAddress,
      '--dhcp-port',
      String(this.ports.dhcp),
      '--tftp-port',
      String(this.ports.tftp),
      '--devices',
      String(this.tenant.macs.length),
      '--first-mac',
      this.tenant.macs[0] ?? '',
      '--trace',
      trace,
      '--speed',
      '0',
      '--breather-ms',
      '1',
    ]
  }

  /** Boots one device with this trace. @param options further options of `boot` */
  bootDevice(mac: string, trace: string, options: string[]): RunningProcess {
    const { dhcp, tftp } = this.ports
    const server = ['--server', edgeAddress, '--dhcp-port', String(dhcp), '--tftp-port', String(tftp)]
    const device = ['--devices', '1', '--first-mac', mac, '--trace', trace, '--breather-ms', '1']
    return new RunningProcess(simProgram, ['boot', '--json', ...server, ...device, ...options])
  }

  /** Counts the reads since its start, as it last published them: once a second. */
  async readCount(): Promise<number> {
    return (await edgeFigures(this.#metricsPort)).bootfarm_edge_stream_reads_total ?? 0
  }

  /** Counts the devices that stream their disks, as it last published them. */
  async streamCount(): Promise<number> {
    return (await edgeFigures(this.#metricsPort)).bootfarm_edge_streams_open ?? 0
  }

  query<T>(): Promise<T> {
    return this.api.query<T>('edge.get', { edgeId: this.edgeId })
  }

  /** Whether everything in its log is acknowledged, and every loss declared. */
  hasReported(): boolean {
    const folder = path.join(this.data, 'reports')
    return (
      readdirSync(folder).every((name) => name === 'gaps') &&
      readFileSync(path.join(folder, 'gaps')).every((byte) => byte === 0)
    )
  }

  async stop(): Promise<void> {
    await this.process.stop()
    await this.uplink.cut()
  }
}

async function makeSite(db: ReturnType<typeof createDb>, clock: Parameters<typeof createTenant>[0]['clock']) {
  const tenant = await createTenant({ db, clock }, `edge-${process.pid}-${performance.now() | 0}`)
  const person = await createPerson({ db }, tenant.organizationId, 'admin')
  const where = { organizationId_id: { organizationId: tenant.organizationId, id: tenant.versionId } }
  const files = { sizeBytes: sectors * 512, diskPath: 'disk', kernelPath: 'kernel', initrdPath: null }
  await db.vdiskVersion.update({ where, data: files })
  return { tenant, person }
}

function writeSiteFiles(folder: string): void {
  const [store, bootFiles] = [path.join(folder, 'edge/store'), path.join(folder, 'boot-files')]
  for (const made of [store, bootFiles]) mkdirSync(made, { recursive: true })
  writeFileSync(path.join(store, 'disk'), siteDisk)
  writeFileSync(path.join(store, 'kernel'), x86Kernel('6.1.0-1-simulated', patterned(30_001)))
  writeFileSync(path.join(bootFiles, 'undionly.kpxe'), patterned(5000))
  writeFileSync(path.join(folder, 'trace.csv'), 'time_ms,offset,length\n0,0,4096\n')
}
