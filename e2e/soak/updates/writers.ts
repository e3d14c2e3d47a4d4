import { readFileSync } from 'node:fs'
import { StreamDevice } from '../../lib/device/stream-device.ts'

/**
 * A program: devices that boot, each from its own address, and then write and read their disks until their standard
 * input ends. The first line says that all of them have their disks. SIGUSR2 makes it print what they noticed since the
 * last time; at the end every written sector is read again, and the account is printed once more.
 */

export interface WritersAccount {
  reads: number
  writes: number
  resumptions: number
  /** The longest request of each device, in ms. */
  stalls: Record<string, number>
  errors: string[]
}

const [, , url = '', network = '', diskFile = '', ...macs] = process.argv
const disk = readFileSync(diskFile)
/** The rest of the disk is never written. */
const writtenCount = 64
const roundMs = 500
let account = newAccount()
let isOver = false

function newAccount(): WritersAccount {
  return { reads: 0, writes: 0, resumptions: 0, stalls: {}, errors: [] }
}

function printAccount(): void {
  process.stdout.write(`account ${JSON.stringify(account)}\n`)
  account = newAccount()
}

class Writer {
  readonly #mac: string
  readonly #number: number
  readonly #device: StreamDevice
  readonly #written = new Map<number, number>()

  constructor(mac: string, number: number, device: StreamDevice) {
    this.#mac = mac
    this.#number = number
    this.#device = device
  }

  async run(): Promise<void> {
    // They do not move in step.
    await pause((this.#number * 97) % roundMs)
    for (let round = 0; !isOver; round += 1) {
      const began = performance.now()
      const sector = (round % writtenCount) * 8
      const byte = 1 + ((round * 7 + this.#number) % 255)
      const code = await this.#timed(() => this.#device.write(sector, byte))
      account.writes += 1
      if (code === 'done') this.#written.set(sector, byte)
      else this.#fail(`write ${sector}: ${code}`)
      await this.#expect(sector)
      await this.#expect((round * 13) % (disk.length / 512))
      if (round % 20 === 0 && (await this.#timed(() => this.#device.report())) !== 'report_ack')
        this.#fail('its report is not acknowledged')
      await pause(roundMs - (performance.now() - began))
    }
    for (const sector of this.#written.keys()) await this.#expect(sector)
    this.#device.close()
  }

  async #expect(sector: number): Promise<void> {
    const byte = this.#written.get(sector)
    const expected = byte === undefined ? disk.subarray(sector * 512, sector * 512 + 512) : Buffer.alloc(512, byte)
    const answer = await this.#timed(() => this.#device.read(sector))
    account.reads += 1
    if (typeof answer === 'string') this.#fail(`read ${sector}: ${answer}`)
    else if (!answer.equals(expected)) this.#fail(`sector ${sector} has other bytes`)
  }

  /** Resumes where the program was exchanged meanwhile; the time that takes is part of the stall. */
  async #timed<T extends Buffer | string>(ask: () => Promise<T>): Promise<T | string> {
    const began = performance.now()
    for (;;) {
      const answer = await ask()
      if (answer === 'no_session') {
        account.resumptions += 1
        const welcome = await this.#device.hello()
        if (typeof welcome === 'string') return `resumption: ${welcome}`
        continue
      }
      const ms = performance.now() - began
      account.stalls[this.#mac] = Math.max(account.stalls[this.#mac] ?? 0, ms)
      return answer
    }
  }

  #fail(what: string): void {
    account.errors.push(`${this.#mac}: ${what}`)
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)))
}

const writers: Writer[] = []
for (const [index, mac] of macs.entries()) {
  const device = await StreamDevice.boot(url, mac, { from: `${network}.${1 + index}` })
  const welcome = await device.hello()
  if (typeof welcome === 'string') throw new Error(`${mac}: ${welcome}`)
  writers.push(new Writer(mac, index, device))
}
process.on('SIGUSR2', printAccount)
process.stdin.on('end', () => {
  isOver = true
})
process.stdin.resume()
process.stdout.write('serving\n')
await Promise.all(writers.map((writer) => writer.run()))
printAccount()
process.exit(0)
