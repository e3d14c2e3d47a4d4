import { execFile, execFileSync } from 'node:child_process'
import dgram from 'node:dgram'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, afterEach, expect, test } from 'vitest'
import { StreamDevice } from '../lib/device/stream-device.ts'
import { testUuid, writeEnrolledEdge } from '../lib/edge/enrolled-edge.ts'
import {
  edgeAddress,
  edgePorts,
  makeBootFiles,
  patterned,
  serveArguments,
  startLoopbackEdge,
} from '../lib/edge/loopback-edge.ts'
import { type Interval, SlowFiles, slowFilesMissing } from '../lib/edge/slow-files.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

const run = promisify(execFile)

const missing = slowFilesMissing()
const title = missing ? ` (${missing})` : ''
const scratch = scratchDirectory()
const running: RunningProcess[] = []
const devices: StreamDevice[] = []
afterEach(async () => {
  for (const device of devices.splice(0)) device.close()
  await Promise.all(running.splice(0).map((process) => process.stop()))
})
afterAll(() => scratch.remove())

const files = makeBootFiles(scratch.path, 256)
const ports = await edgePorts()
const url = `http://${edgeAddress}:${ports.http}`
const delayMs = 200

async function start(writeCache: string): Promise<RunningProcess> {
  const data = path.join(scratch.path, writeCache)
  const edge = await startLoopbackEdge(ports, [...serveArguments(files), '--data', data, '--write-cache', writeCache])
  running.push(edge)
  return edge
}

async function boot(number: number): Promise<StreamDevice> {
  const device = await StreamDevice.boot(url, `02:bf:00:00:00:0${number}`)
  devices.push(device)
  return device
}

/** Asks one question after the other, until the work has ended; returns when each was asked and answered. */
async function answersDuring(work: Promise<unknown>, ask: () => Promise<void>): Promise<Interval[]> {
  let isOver = false
  const over = work.finally(() => {
    isOver = true
  })
  const answers: Interval[] = []
  while (!isOver) {
    const begin = now()
    await ask()
    answers.push({ begin, end: now() })
  }
  await over
  return answers
}

/** A loop that waited for the calls would answer before and after each of them, never within one. */
const expectAnswers = (within: number) => expect(within).toBeGreaterThan(0)

const now = () => performance.timeOrigin + performance.now()

for (const writeCache of ['edge_persistent', 'edge'])
  test.skipIf(missing)(
    `with ${delayMs} ms in every file call, the packet loop makes none of them for a write cache of class ${writeCache}, and answers others meanwhile${title}`,
    async () => {
      const edge = await start(writeCache)
      const runs = await boot(1)
      expect(await runs.hello()).toMatchObject({ type: 'welcome' })
      const others = [await boot(2), await boot(3), await boot(4)]
      const disk = await SlowFiles.of(edge, delayMs, path.join(scratch.path, `${writeCache}.calls`))
      const probe = async () => expect(await runs.probe()).toBe('probe_ack')
      const read = async () => expect(await runs.read(9)).toBeInstanceOf(Buffer)
      const opened = Promise.all(others.map((device) => device.hello()))
      const whileOpened = await answersDuring(opened, probe)
      expect(await opened).toMatchObject(others.map(() => ({ type: 'welcome' })))
      const written = Promise.all(others.map((device, index) => device.write(3, index)))
      const whileWritten = await answersDuring(written, read)
      expect(await written).toEqual(others.map(() => 'done'))
      const { ofFirstThread, count, within } = await disk.end()
      expect(ofFirstThread).toEqual([])
      expect(count / others.length).toBeGreaterThan(4)
      expectAnswers(within(whileOpened))
      expectAnswers(within(whileWritten))
      for (const [index, device] of others.entries()) expect(await device.read(3)).toEqual(Buffer.alloc(512, index))
      expect(edge.isRunning).toBe(true)
    },
  )

/** Writes files to the disk, and takes them out of this machine's memory. */
function evict(...paths: string[]): void {
  execFileSync('sync', paths)
  for (const file of paths) execFileSync('dd', [`if=${file}`, 'iflag=nocache', 'count=0', 'status=none'])
}

async function curl(url: string): Promise<Buffer> {
  const { stdout } = await run('curl', ['-sS', url], { encoding: 'buffer', maxBuffer: 64 << 20 })
  return stdout
}

test.skipIf(missing)(
  `with ${delayMs} ms in every file call, threads read a kernel that TFTP sends, and the packet loop answers others meanwhile${title}`,
  async () => {
    const edge = await start('device_ram')
    const runs = await boot(1)
    expect(await runs.hello()).toMatchObject({ type: 'welcome' })
    const [, handle] = (await boot(2)).script.match(/\/b\/([0-9a-f]{16})\//) ?? []
    evict(files.kernel)
    const disk = await SlowFiles.of(edge, delayMs, path.join(scratch.path, 'tftp.calls'))
    const got = curl(`tftp://${edgeAddress}:${ports.tftp}/b/${handle}/kernel`)
    const answers = await answersDuring(got, async () => expect(await runs.probe()).toBe('probe_ack'))
    expect((await got).equals(readFileSync(files.kernel))).toBe(true)
    const { ofFirstThread, count, within } = await disk.end()
    expect(ofFirstThread).toEqual([])
    expect(count).toBeGreaterThan(1)
    expectAnswers(within(answers))
  },
)

test.skipIf(missing)(
  `with ${delayMs} ms in every file call, threads read a disk of the store that HTTP sends, and the packet loop answers others meanwhile${title}`,
  async () => {
    const store = path.join(scratch.path, 'store')
    const image = path.join(scratch.path, 'image.raw')
    writeFileSync(image, patterned(1 << 20))
    let version = ''
    for (const args of [['init'], ['import', image, '--name', 'Plain', '--no-boot-files', '--json']]) {
      const made = new RunningProcess(edgeProgram, ['vdisk', ...args, '--store', store])
      expect(await made.ended, made.output).toBe(0)
      version = made.jsonLines<{ version?: string }>().at(-1)?.version ?? ''
    }
    const serving = ['--store', store, '--version', version, '--boot-files', files.bootFiles]
    const edge = await startLoopbackEdge(ports, serving)
    running.push(edge)
    const script = await (await fetch(`${url}/m/02:bf:00:00:00:05/boot.ipxe`)).text()
    const [, diskUrl = ''] = script.match(/^sanboot --no-describe (\S+\/disk)$/m) ?? []
    const inside = readdirSync(store, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
    evict(...inside.map(({ parentPath, name }) => path.join(parentPath, name)))
    const disk = await SlowFiles.of(edge, delayMs, path.join(scratch.path, 'disk.calls'))
    const got = curl(diskUrl)
    const answers = await answersDuring(got, async () => expect((await fetch(`${url}/healthz`)).status).toBe(200))
    expect((await got).equals(readFileSync(image))).toBe(true)
    const { ofFirstThread, count, within } = await disk.end()
    expect(ofFirstThread).toEqual([])
    expect(count).toBeGreaterThan(4)
    expectAnswers(within(answers))
  },
)

const diskSize = 256 * 512
const described = (name: string) => ({
  sizeBytes: diskSize,
  diskPath: `${name}/disk`,
  kernelPath: `${name}/kernel`,
  initrdPath: null,
  commandLine: 'quiet',
})

/** Puts the files of a version into the store of an edge's data directory. */
function bringVersion(data: string, name: string): void {
  const directory = path.join(data, 'store', name)
  mkdirSync(directory, { recursive: true })
  copyFileSync(files.vdisk, path.join(directory, 'disk'))
  copyFileSync(files.kernel, path.join(directory, 'kernel'))
}

const macs = [1, 2].map((number) => `02:bf:00:00:00:0${number}`)

test.skipIf(missing)(
  `with ${delayMs} ms in every file call, threads open a version that a boot script waits for, and the packet loop answers others meanwhile${title}`,
  async () => {
    const data = path.join(scratch.path, 'opens')
    writeEnrolledEdge(data, macs, [described('there'), described('comes')])
    bringVersion(data, 'there')
    const edge = await startLoopbackEdge(ports, ['--data', data, '--boot-files', files.bootFiles])
    running.push(edge)
    const runs = await boot(1)
    expect(await runs.hello()).toMatchObject({ type: 'welcome' })
    const disk = await SlowFiles.of(edge, delayMs, path.join(scratch.path, 'opens.calls'))
    bringVersion(data, 'comes')
    const booted = boot(2)
    const answers = await answersDuring(booted, async () => expect(await runs.probe()).toBe('probe_ack'))
    const { ofFirstThread, count, within } = await disk.end()
    expect((await booted).script).toContain('/kernel')
    expect(await (await booted).hello()).toMatchObject({ type: 'welcome' })
    expect(ofFirstThread).toEqual([])
    expect(count).toBeGreaterThan(2)
    expectAnswers(within(answers))
  },
)

test.skipIf(missing)(
  `with ${delayMs} ms in every file call, threads read the heads of private images and open them, and the packet loop answers others meanwhile${title}`,
  async () => {
    const data = path.join(scratch.path, 'images')
    const numbers = [2, 3, 4]
    const image = { ...described('there'), writeCache: { class: 'private' as const, full: 'stop' as const } }
    const all = [1, ...numbers].map((number) => `02:bf:00:00:00:0${number}`)
    writeEnrolledEdge(data, all, [described('there'), image, image, image])
    bringVersion(data, 'there')
    const edge = await startLoopbackEdge(ports, ['--data', data, '--boot-files', files.bootFiles])
    running.push(edge)
    const runs = await boot(1)
    expect(await runs.hello()).toMatchObject({ type: 'welcome' })
    const probe = async () => expect(await runs.probe()).toBe('probe_ack')
    const open = async (number: number) => {
      const device = await boot(number)
      expect(await device.hello()).toMatchObject({ type: 'welcome' })
      return device
    }
    const disk = await SlowFiles.of(edge, delayMs, path.join(scratch.path, 'images.calls'))
    const made = Promise.all(
      numbers.map(async (number) => {
        const device = await open(number)
        expect(await device.write(3, number)).toBe('done')
      }),
    )
    const whileMade = await answersDuring(made, probe)
    const found = Promise.all(numbers.map(open))
    const whileFound = await answersDuring(found, probe)
    const { ofFirstThread, count, within } = await disk.end()
    expect(ofFirstThread).toEqual([])
    // Its head and its parts.
    expect(count / numbers.length).toBeGreaterThan(8)
    expectAnswers(within(whileMade))
    expectAnswers(within(whileFound))
    for (const [index, device] of (await found).entries())
      expect(await device.read(3)).toEqual(Buffer.alloc(512, numbers[index]))
  },
)

test.skipIf(missing)(
  `with ${delayMs} ms in every file call, a thread keeps that a schedule's run began before its device is switched on, and the packet loop answers others meanwhile${title}`,
  async () => {
    const data = path.join(scratch.path, 'schedules')
    const begin = Date.now()
    writeEnrolledEdge(data, macs, [described('there'), described('there')], [], undefined, {
      issuedUnixMs: begin,
      schedules: [
        {
          id: testUuid(600),
          action: 'power_on',
          power: 'wake_on_lan',
          ratePerMinute: 6000,
          devices: [1],
          instants: Array.from({ length: 60 }, (_, index) => begin + (index + 1) * 2000),
        },
      ],
    })
    bringVersion(data, 'there')
    const listener = dgram.createSocket('udp4').bind(0, edgeAddress)
    await once(listener, 'listening')
    const target = `${edgeAddress}:${listener.address().port}`
    const serving = ['--data', data, '--boot-files', files.bootFiles, '--wol-target', target]
    const edge = await startLoopbackEdge(ports, serving)
    running.push(edge)
    const runs = await boot(1)
    expect(await runs.hello()).toMatchObject({ type: 'welcome' })
    let woken = 0
    const began: number[] = []
    listener.on('message', () => {
      woken += 1
      began.push(runsBegun(data))
    })
    const disk = await SlowFiles.of(edge, delayMs, path.join(scratch.path, 'schedules.calls'))
    const before = woken
    const isWoken = (async () => {
      while (woken < before + 2) await once(listener, 'message')
    })()
    const answers = await answersDuring(isWoken, async () => expect(await runs.probe()).toBe('probe_ack'))
    const { ofFirstThread, count, within } = await disk.end()
    listener.close()
    for (const [index, runs] of began.entries()) expect(runs).toBeGreaterThan(index)
    expect(ofFirstThread).toEqual([])
    expect(count).toBeGreaterThan(2)
    expectAnswers(within(answers))
  },
)

/** Counts the runs of schedules that an edge's file says began: records of 64 bytes, whose first byte is 1. */
function runsBegun(data: string): number {
  const bytes = readFileSync(path.join(data, 'schedules'))
  return Array.from({ length: bytes.length / 64 }, (_, index) => bytes[index * 64]).filter((kind) => kind === 1).length
}
