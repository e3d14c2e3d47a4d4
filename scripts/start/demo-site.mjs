import { existsSync } from 'node:fs'
import path from 'node:path'
import { inRoot } from '../lib/paths.mjs'
import { step } from '../lib/progress.mjs'
import { must } from '../lib/run.mjs'
import { makeDemoFiles } from './demo-files.mjs'
import { answers } from './ports.mjs'

const edgeAddress = '127.0.0.1'
const leases = '127.77.0.10-127.77.0.250'
const deviceCount = 6
/** Simulated devices that nobody has registered. */
const strangerCount = 2
const firstStrangerMac = '02:bf:00:00:01:01'
const historyDays = 30

/** The site that every start has: an edge on loopback, and simulated devices. */
export class DemoSite {
  static processNames = ['edge', 'devices', 'strangers']
  #options
  #programs
  #data
  #trace = inRoot('e2e/traces/boot-trace-bios.csv')
  #files

  /** @param {{ edge: string, sim: string }} programs */
  constructor(options, programs) {
    this.#options = options
    this.#programs = programs
    this.#data = path.join(options.data, 'edge')
    this.#files = makeDemoFiles(path.join(this.#data, 'store'), this.#trace)
  }

  async start(processes, joinToken) {
    if (!existsSync(path.join(this.#data, 'identity.json'))) await this.#enrol(joinToken)
    await step('Starting the edge', () => processes.start(this.#edge()))
    await step(`Starting ${deviceCount} simulated devices`, () => processes.start(this.#devices()))
    await step(`Starting ${strangerCount} more that nobody has registered`, () => processes.start(this.#strangers()))
  }

  async #enrol(joinToken) {
    const url = `http://127.0.0.1:${this.#options.apiPort}`
    const enrolment = ['enrol', '--url', url, '--token', joinToken, '--data', this.#data]
    await step('Enrolling the edge with its join token', () =>
      must('Enrolling the edge', this.#programs.edge, enrolment),
    )
    const history = ['history', '--data', this.#data, '--days', String(historyDays), '--seed', '1']
    await step(`Making ${historyDays} days of demo history`, () =>
      must('Making demo history', this.#programs.sim, history),
    )
  }

  #edge() {
    const { edgePorts } = this.#options
    const ports = ['dhcp', 'pxe', 'tftp', 'http', 'stream', 'peer']
    const args = ['serve', '--data', this.#data, '--listen', edgeAddress, '--boot-files', this.#files.bootFiles]
    args.push('--dhcp', 'server', '--dhcp-pool', leases, '--wol-target', `${edgeAddress}:${edgePorts.wol}`)
    for (const port of ports) args.push(`--${port}-port`, String(edgePorts[port]))
    const ready = () => answers(`http://${edgeAddress}:${edgePorts.http}/healthz`)
    return { name: 'edge', command: this.#programs.edge, args, ready }
  }

  #devices() {
    return this.#simulated('devices', deviceCount, 3, ['--wol-port', String(this.#options.edgePorts.wol)])
  }

  #strangers() {
    return this.#simulated('strangers', strangerCount, strangerCount, ['--first-mac', firstStrangerMac])
  }

  #simulated(name, count, waveSize, further) {
    const { edgePorts, waveIntervalSeconds } = this.#options
    const args = ['boot', '--server', edgeAddress, '--devices', String(count), ...further]
    args.push('--dhcp-port', String(edgePorts.dhcp), '--tftp-port', String(edgePorts.tftp))
    args.push('--trace', this.#trace, '--verify', this.#files.disk)
    args.push('--waves', '--wave-size', String(waveSize), '--wave-interval-s', String(waveIntervalSeconds))
    return { name, command: this.#programs.sim, args, ready: async () => true }
  }
}
