import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { bootDevices } from '../../lib/device/simulated-devices.ts'
import { StreamDevice } from '../../lib/device/stream-device.ts'
import { type ControlledEdge, siteDisk } from '../../lib/edge/controlled-edge.ts'
import { edgeAddress } from '../../lib/edge/loopback-edge.ts'

/**
 * Devices that write, beside the simulated ones that only read; the tenant has registered them. The first one has an
 * image of its own, the writes of the second one end with the edge's process.
 */
export const writerCount = 2
/** A boot reads for so long, so that most of the time nothing is downloaded. */
const readsPerBoot = 40
const readIntervalMs = 500
const sectorsWritten = 16
/** Apart from the devices that the tenant has registered. */
const firstMac = '02:bf:00:10:00:00'

/** What devices have noticed in one part of the run. */
export interface Account {
  /** Boots of simulated devices that became ready. */
  ready: number
  reads: number
  writes: number
  /** The longest read or write of any device. */
  stallMs: number
  /** Whatever was answered other than it should have been. */
  errors: string[]
}

export function newAccount(): Account {
  return { ready: 0, reads: 0, writes: 0, stallMs: 0, errors: [] }
}

/** Simulated devices that boot and read over and over, and devices that read and write. */
export class Load {
  readonly #edge: ControlledEdge
  readonly #devices: number
  readonly #trace: string
  readonly #writers: StreamDevice[] = []
  #account = newAccount()
  #ending = false

  constructor(edge: ControlledEdge, folder: string, devices: number) {
    this.#edge = edge
    this.#devices = devices
    this.#trace = path.join(folder, 'reads.csv')
    const lines = Array.from(
      { length: readsPerBoot },
      (_, index) => `${index * readIntervalMs},${4096 * (index % 7)},4096`,
    )
    writeFileSync(this.#trace, `time_ms,offset,length\n${lines.join('\n')}\n`)
    writeFileSync(`${this.#trace}.disk`, siteDisk)
  }

  /** From now on what devices notice goes to a new account. @returns the one until now */
  next(): Account {
    const before = this.#account
    this.#account = newAccount()
    return before
  }

  get account(): Readonly<Account> {
    return this.#account
  }

  /** Resolves when `end` was called and every device has ended. */
  async run(): Promise<void> {
    for (const mac of this.#edge.tenant.macs.slice(0, writerCount)) {
      const device = await StreamDevice.boot(this.#edge.httpUrl, mac)
      const welcome = await device.hello()
      if (typeof welcome === 'string') throw new Error(`${mac}: ${welcome}`)
      this.#writers.push(device)
    }
    await Promise.all([this.#boot(), ...this.#writers.map((device, index) => this.#work(device, index))])
    for (const device of this.#writers) device.close()
  }

  end(): void {
    this.#ending = true
  }

  async #boot(): Promise<void> {
    const { dhcp, tftp } = this.#edge.ports
    while (!this.#ending) {
      const edge = ['--server', edgeAddress, '--dhcp-port', String(dhcp), '--tftp-port', String(tftp)]
      const all = ['--devices', String(this.#devices), '--first-mac', firstMac]
      const reads = ['--trace', this.#trace, '--verify', `${this.#trace}.disk`]
      const { devices, output } = await bootDevices([...edge, ...all, ...reads])
      const account = this.#account
      if (devices.length !== this.#devices) account.errors.push(`${devices.length} devices: ${output.slice(-500)}`)
      for (const { mac, outcome, text, longestReadUs } of devices) {
        account.reads += readsPerBoot
        account.stallMs = Math.max(account.stallMs, longestReadUs / 1000)
        if (outcome === 'ready') account.ready += 1
        else account.errors.push(`${mac}: ${text}`)
      }
    }
  }

  async #work(device: StreamDevice, number: number): Promise<void> {
    const written = new Map<number, number>()
    for (let round = 0; !this.#ending; round += 1) {
      const sector = round % sectorsWritten
      const byte = 1 + ((round * 7 + number) % 255)
      const code = await this.#timed(device, () => device.write(sector, byte))
      this.#account.writes += 1
      if (code === 'done') written.set(sector, byte)
      else this.#account.errors.push(`writer ${number}: write ${sector}: ${code}`)
      await this.#expect(device, written, (round * 13) % (siteDisk.length / 512))
    }
    for (const sector of written.keys()) await this.#expect(device, written, sector)
  }

  async #expect(device: StreamDevice, written: Map<number, number>, sector: number): Promise<void> {
    const byte = written.get(sector)
    const expected = byte === undefined ? siteDisk.subarray(sector * 512, sector * 512 + 512) : Buffer.alloc(512, byte)
    const answer = await this.#timed(device, () => device.read(sector))
    this.#account.reads += 1
    if (typeof answer === 'string' || !answer.equals(expected))
      this.#account.errors.push(`read ${sector}: ${typeof answer === 'string' ? answer : 'other bytes'}`)
  }

  /** Resumes where the program was exchanged meanwhile; the time that takes is part of the stall. */
  async #timed<T extends Buffer | string>(device: StreamDevice, ask: () => Promise<T>): Promise<T | string> {
    const begin = performance.now()
    for (;;) {
      const answer = await ask()
      if (answer === 'no_session') {
        const welcome = await device.hello()
        if (typeof welcome === 'string') return `resumption: ${welcome}`
        continue
      }
      this.#account.stallMs = Math.max(this.#account.stallMs, performance.now() - begin)
      return answer
    }
  }
}
