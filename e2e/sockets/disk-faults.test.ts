import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { StreamDevice } from '../lib/device/stream-device.ts'
import { writeEnrolledEdge } from '../lib/edge/enrolled-edge.ts'
import {
  edgeAddress,
  edgePorts,
  makeBootFiles,
  patterned,
  serveArguments,
  startLoopbackEdge,
} from '../lib/edge/loopback-edge.ts'
import { FaultyDisk, faultyDisksMissing } from '../lib/lab/faulty-disk.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'

const scratch = scratchDirectory()
const sectors = 16_384
const files = makeBootFiles(scratch.path, sectors)
const ports = await edgePorts()
const url = `http://${edgeAddress}:${ports.http}`
const macs = ['02:bf:00:00:00:01', '02:bf:00:00:00:02', '02:bf:00:00:00:03'] as const
const missing = faultyDisksMissing()
const running: RunningProcess[] = []
const devices: StreamDevice[] = []
let disk: FaultyDisk
let runs = 0

beforeEach(async (context) => {
  if (missing) context.skip(missing)
  const directory = path.join(scratch.path, `disk-${runs++}`)
  mkdirSync(directory)
  disk = await FaultyDisk.make(directory, 96)
})
afterEach(async () => {
  for (const device of devices.splice(0)) device.close()
  await Promise.all(running.splice(0).map((process) => process.stop()))
  await disk?.remove()
})
afterAll(() => scratch.remove())

/** Returns what the unwritten disk has there. */
const content = patterned(sectors * 512)
const below = (sector: number) => content.subarray(sector * 512, (sector + 1) * 512)
const full = (byte: number) => Buffer.alloc(512, byte)
const data = () => path.join(disk.path, 'data')
const health = async () => (await (await fetch(`${url}/healthz`)).text()).trim()
const healthy = () => expect.poll(health).toBe('ok')
const degraded = (pattern: RegExp) => expect.poll(health).toMatch(pattern)
const epochOnDisk = () => Number(readFileSync(path.join(data(), 'epoch'), 'utf8'))

async function start(args: string[]): Promise<RunningProcess> {
  const edge = await startLoopbackEdge(ports, ['--data', data(), '--boot-files', files.bootFiles, '--json', ...args])
  running.push(edge)
  return edge
}

async function boot(mac: string): Promise<StreamDevice> {
  const device = await StreamDevice.boot(url, mac)
  devices.push(device)
  expect(await device.hello()).toMatchObject({ type: 'welcome' })
  await device.report()
  return device
}

/** Everything is on the one disk: the version, the write caches, the data directory. */
const kinds = {
  enrolled: () => {
    if (!existsSync(data())) {
      mkdirSync(path.join(data(), 'store'), { recursive: true })
      writeFileSync(path.join(data(), 'store/disk.raw'), content)
      const version = {
        sizeBytes: sectors * 512,
        diskPath: 'disk.raw',
        kernelPath: null,
        initrdPath: null,
        commandLine: '',
      }
      const writeCache = { class: 'edge_persistent', full: 'read_only' } as const
      writeEnrolledEdge(data(), [...macs], [version, { ...version, writeCache }, { ...version, writeCache }])
    }
    return start([])
  },
  standalone: () => {
    mkdirSync(data(), { recursive: true })
    const vdisk = path.join(data(), 'disk.raw')
    if (!existsSync(vdisk)) writeFileSync(vdisk, content)
    return start([
      ...serveArguments({ ...files, vdisk }),
      '--write-cache',
      'edge_persistent',
      '--write-cache-full',
      'read_only',
      '--store',
      data(),
    ])
  },
}

describe.each(Object.entries(kinds))('an edge on a disk that fails: %s', (kind, serve) => {
  const isEnrolled = kind === 'enrolled'

  test('a full disk keeps it neither from starting nor from serving, and all works once there is space', async () => {
    const before = await serve()
    const writing = await boot(macs[1])
    expect(await writing.write(0, 1)).toBe('done')
    expect(await before.stop()).toBe(0)
    rmSync(path.join(data(), 'reserve'))
    disk.fill()

    const edge = await serve()
    await degraded(/^degraded: data_low_space.*store_low_space/)
    // It resumes with what it had, and reads it; known blocks are written, new ones are not.
    expect(await writing.hello()).toMatchObject({ type: 'welcome' })
    expect(await writing.read(0)).toEqual(full(1))
    expect(await writing.write(0, 2)).toBe('done')
    expect(await writing.write(80, 3)).toBe('cache_full')
    expect(await writing.read(0)).toEqual(full(2))
    if (isEnrolled) {
      // Its writes are in its own memory.
      const reading = await boot(macs[0])
      for (const sector of [0, 8000, sectors - 1]) expect(await reading.read(sector)).toEqual(below(sector))
      expect(epochOnDisk()).toBe(2)
    }
    // It needs a new layer.
    const refused = await StreamDevice.boot(url, macs[2])
    devices.push(refused)
    expect(await refused.hello()).toBe('cache_failed')

    disk.free()
    await healthy()
    const again = await boot(macs[2])
    expect(await again.write(80, 4)).toBe('done')
    expect(await again.read(80)).toEqual(full(4))
    const restarted = await boot(macs[1])
    expect(await restarted.write(80, 5)).toBe('done')
    expect(await restarted.read(0)).toEqual(full(2))
    expect(await edge.stop()).toBe(0)
    await serve()
    expect(await restarted.hello()).toMatchObject({ type: 'welcome' })
    expect(await restarted.read(80)).toEqual(full(5))
    if (isEnrolled) expect(epochOnDisk()).toBe(3)
  })

  test('it starts on a read-only disk with a number of its own, and counts on when it can write', async () => {
    const before = await serve()
    const device = await boot(macs[0])
    expect(await before.stop()).toBe(0)
    disk.makeReadOnly()

    const edge = await serve()
    await degraded(/data_unwritable.*boots_not_kept.*store_unwritable/)
    if (isEnrolled) {
      await degraded(/epoch_not_kept/)
      // The boot was in the journal, which is read.
      expect(await device.hello()).toMatchObject({ type: 'welcome' })
      expect(await device.read(5)).toEqual(below(5))
      const other = await boot(macs[0])
      expect(await other.read(5)).toEqual(below(5))
      expect(epochOnDisk()).toBe(1)
    }
    disk.makeWritable()
    await expect.poll(health).not.toMatch(/data_unwritable|store_unwritable|epoch_not_kept/)
    const last = await boot(macs[1])
    expect(await last.write(0, 7)).toBe('done')
    await healthy()
    expect(await edge.stop()).toBe(0)
    const chosen = isEnrolled ? epochOnDisk() : 0
    if (isEnrolled) expect(chosen).toBeGreaterThan(2 ** 40)
    await serve()
    expect(await last.hello()).toMatchObject({ type: 'welcome' })
    expect(await last.read(0)).toEqual(full(7))
    if (isEnrolled) expect(epochOnDisk()).toBe(chosen + 1)
  })

  test('a disk that vanishes under load leaves what is in memory, and nothing ends', async () => {
    const edge = await serve()
    const writing = await boot(macs[1])
    expect(await writing.write(0, 1)).toBe('done')
    const reading = await boot(macs[isEnrolled ? 0 : 2])
    for (const sector of [0, 8, 16]) expect(await reading.read(sector)).toEqual(below(sector))
    disk.lose()
    await degraded(/boots_not_kept/)
    for (const sector of [0, 8, 16]) expect(await reading.read(sector)).toEqual(below(sector))
    // What was not written is never acknowledged, and what lies below never stands for it.
    expect(await writing.write(0, 2)).toBe('cache_lost')
    expect(await writing.read(0)).toBe('cache_lost')
    if (isEnrolled) {
      const other = await boot(macs[0])
      expect(await other.read(8)).toEqual(below(8))
    }
    expect(edge.isRunning).toBe(true)
  })
})
