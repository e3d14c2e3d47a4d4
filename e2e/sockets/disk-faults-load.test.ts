import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'
import type { Waits, WorkAccount } from '../lib/device/working-devices.ts'
import { writeEnrolledEdge } from '../lib/edge/enrolled-edge.ts'
import { edgeAddress, edgePorts, makeBootFiles, patterned, startLoopbackEdge } from '../lib/edge/loopback-edge.ts'
import { SlowFiles, slowFilesMissing } from '../lib/edge/slow-files.ts'
import { FaultyDisk, faultyDisksMissing } from '../lib/lab/faulty-disk.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

const missing = faultyDisksMissing() ?? slowFilesMissing()
const title = missing ? ` (${missing})` : ''
/** So many devices write and read, and as many only read. */
const deviceCount = 16
/** What each of them writes, one after the other; afterwards every block that they write is in their caches. */
const writtenCount = 64
const sectors = 4096
const scratch = scratchDirectory()
const running: RunningProcess[] = []
let disk: FaultyDisk | undefined
afterAll(async () => {
  await Promise.all(running.map((process) => process.stop()))
  await disk?.remove()
  scratch.remove()
})

const workingMac = (number: number) => `02:bf:00:00:02:${number.toString(16).padStart(2, '0')}`

/** Devices of one kind, at work. */
class Work {
  readonly #process: RunningProcess

  constructor(url: string, diskFile: string, first: number, kind: 'read' | 'write') {
    const program = path.resolve(import.meta.dirname, '../lib/device/working-devices.ts')
    const words = [program, url, '127.79.1', String(deviceCount), diskFile, String(first), kind]
    this.#process = new RunningProcess(process.execPath, words, {}, 'pipe')
    running.push(this.#process)
  }

  async boots(): Promise<void> {
    await this.#process.waitFor(/^boots .*\n/m)
  }

  #waits(): Waits[] {
    return [...this.#process.output.matchAll(/^waits (.*)\n/gm)].map(([, text = '']) => JSON.parse(text) as Waits)
  }

  /** Resolves once they have got so many more answers; fails as soon as one of them was wrong. */
  async goesOn(answers: number): Promise<void> {
    let got = 0
    // What was answered before does not count.
    for (let isFirst = true; got < answers; isFirst = false) {
      const known = this.#waits().length
      this.#process.kill('SIGUSR2')
      const waits = await this.#process.waitUntil('what the devices measured', () => this.#waits()[known])
      expect(waits.wrong).toBe(0)
      if (!isFirst) got += waits.answers
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }

  async account(): Promise<WorkAccount> {
    this.#process.end('')
    const [, text = ''] = await this.#process.waitFor(/^account (.*)\n/m)
    return JSON.parse(text) as WorkAccount
  }
}

test.skipIf(missing)(
  `${2 * deviceCount} devices at work read and write on while their edge’s disk is full and while it is slow; when it vanishes, no device gets wrong bytes${title}`,
  async () => {
    const files = makeBootFiles(scratch.path, sectors)
    const folder = path.join(scratch.path, 'disk')
    mkdirSync(folder)
    const own = await FaultyDisk.make(folder, 96)
    disk = own
    const data = path.join(own.path, 'data')
    mkdirSync(path.join(data, 'store'), { recursive: true })
    writeFileSync(path.join(data, 'store/disk.raw'), patterned(sectors * 512))
    const version = {
      sizeBytes: sectors * 512,
      diskPath: 'disk.raw',
      kernelPath: null,
      initrdPath: null,
      commandLine: '',
    }
    const writeCache = { class: 'edge', full: 'read_only' } as const
    const numbers = Array.from({ length: 2 * deviceCount }, (_, index) => index + 1)
    const versions = numbers.map((number) => (number > deviceCount ? version : { ...version, writeCache }))
    writeEnrolledEdge(data, numbers.map(workingMac), versions)
    const ports = await edgePorts()
    const edge = await startLoopbackEdge(ports, ['--data', data, '--boot-files', files.bootFiles, '--json'])
    running.push(edge)
    const url = `http://${edgeAddress}:${ports.http}`
    const health = async () => (await (await fetch(`${url}/healthz`)).text()).trim()
    const degraded = (pattern: RegExp) => expect.poll(health).toMatch(pattern)
    const healthy = () => expect.poll(health).toBe('ok')

    const writing = new Work(url, files.vdisk, 1, 'write')
    const reading = new Work(url, files.vdisk, 1 + deviceCount, 'read')
    const [diskReads, roundAnswers] = [sectors * deviceCount, 3 * deviceCount]
    await Promise.all([writing.boots(), reading.boots()])
    // Every block of the disk was read, and every block that is written was written before.
    await Promise.all([writing.goesOn(2 * writtenCount * roundAnswers), reading.goesOn(diskReads / 8)])
    const bothGoOn = () => Promise.all([writing.goesOn(roundAnswers), reading.goesOn(roundAnswers)])

    own.fill()
    await degraded(/^degraded: data_low_space.*store_low_space/)
    await bothGoOn()
    own.free()
    await healthy()
    await bothGoOn()

    const slow = await SlowFiles.of(edge, 200, path.join(scratch.path, 'calls'))
    await bothGoOn()
    const { ofFirstThread } = await slow.end()
    expect(ofFirstThread).toEqual([])
    await bothGoOn()

    own.lose()
    await degraded(/boots_not_kept/)
    await reading.goesOn(roundAnswers)
    const [written, read] = [await writing.account(), await reading.account()]
    expect(read.wrong).toEqual([])
    // What was not written is never acknowledged, and what lies below never stands for it.
    for (const wrong of written.wrong) expect(wrong).toMatch(/: (read|write) \d+: cache_lost$/)
    expect(edge.isRunning, edge.output).toBe(true)
  },
)
