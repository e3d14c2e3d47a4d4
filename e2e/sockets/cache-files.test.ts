import { spawnSync } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { StreamDevice } from '../lib/device/stream-device.ts'
import { testUuid, versionIdOf, writeEnrolledEdge } from '../lib/edge/enrolled-edge.ts'
import { edgeAddress, edgePorts, makeBootFiles, patterned, startLoopbackEdge } from '../lib/edge/loopback-edge.ts'
import { slowFilesMissing } from '../lib/edge/slow-files.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

const scratch = scratchDirectory()
const sectors = 4096
const files = makeBootFiles(scratch.path, sectors)
const other = path.join(scratch.path, 'other.raw')
const mac = '02:bf:00:00:00:01'
const version = '6d5f0d1c-3a83-4c5b-9a50-0d5b8cb2a6ff'
const ports = await edgePorts()
const url = `http://${edgeAddress}:${ports.http}`
const running: RunningProcess[] = []
const devices: StreamDevice[] = []
let stores = 0
let store = ''

beforeAll(() => writeFileSync(other, patterned(sectors * 512).fill(9, 0, 4096)))
beforeEach(() => {
  store = newStore(files.vdisk)
})
afterEach(async () => {
  for (const device of devices.splice(0)) device.close()
  await Promise.all(running.splice(0).map((process) => process.stop()))
})
afterAll(() => scratch.remove())

/** Returns what the unwritten disk has there. */
const below = (sector: number) => patterned(sectors * 512).subarray(sector * 512, (sector + 1) * 512)
const full = (byte: number) => Buffer.alloc(512, byte)

function vdisk(words: string[], exit = 0, at = store): string {
  const { status, stdout, stderr } = spawnSync(edgeProgram, ['vdisk', ...words, '--store', at], { encoding: 'utf8' })
  expect(status, stdout + stderr).toBe(exit)
  return stdout + stderr
}

function newStore(image: string, id = version): string {
  const directory = path.join(scratch.path, `store-${stores++}`)
  vdisk(['init'], 0, directory)
  const boot = ['--kernel', files.kernel, '--initrd', files.initrd, '--cmdline', 'quiet']
  vdisk(['import', image, '--name', 'Lab', '--version', id, ...boot], 0, directory)
  return directory
}

async function start(more: string[] = []): Promise<RunningProcess> {
  const args = ['--store', store, '--data', `${store}-data`, '--version', version, '--boot-files', files.bootFiles]
  const edge = await startLoopbackEdge(ports, [...args, '--json', '--write-cache', 'edge_persistent', ...more])
  running.push(edge)
  return edge
}

async function boot(): Promise<StreamDevice> {
  const device = await StreamDevice.boot(url, mac)
  devices.push(device)
  expect(await device.hello()).toMatchObject({ type: 'welcome' })
  return device
}

const deviceOf = (at = store) => {
  const [line = ''] = vdisk(['caches', '--json'], 0, at).split('\n')
  return (JSON.parse(line) as { device: string }).device
}

/** Has the device write, and exports its writes. */
async function written(): Promise<{ device: string; file: string }> {
  const edge = await start()
  const machine = await boot()
  for (const [sector, byte] of [
    [0, 1],
    [9, 2],
    [sectors - 1, 3],
  ] as const)
    expect(await machine.write(sector, byte)).toBe('done')
  const device = deviceOf()
  const file = path.join(scratch.path, `${stores}.cache`)
  expect(vdisk(['caches', 'export', file, '--device', device], 1)).toMatch(/is running, or its edge has heard from it/)
  expect(existsSync(file) || existsSync(`${file}.part`)).toBe(false)
  expect(await edge.stop()).toBe(0)
  expect(vdisk(['caches', 'export', file, '--device', device])).toMatch(/^exported the writes of .*: 12\.0 KiB above/)
  expect(vdisk(['caches', 'export', file, '--device', device], 1)).toMatch(/already exists; --force overwrites it/)
  return { device, file }
}

test('a device finds its exported writes again, in its own store and in another one', async () => {
  const { device, file } = await written()
  // Later writes are replaced, but only when that was said, and not while the device runs.
  const edge = await start()
  const machine = await boot()
  for (const sector of [0, 80]) expect(await machine.write(sector, 7)).toBe('done')
  expect(vdisk(['caches', 'import', file, '--force'], 1)).toMatch(/is running, or its edge has heard from it/)
  expect(await machine.read(0)).toEqual(full(7))
  expect(await edge.stop()).toBe(0)
  expect(vdisk(['caches', 'import', file], 1)).toMatch(/has writes here already; --force replaces them/)
  vdisk(['caches', 'import', file, '--force'])
  for (const at of [store, newStore(files.vdisk)]) {
    if (at !== store) {
      store = at
      expect(vdisk(['caches', 'import', file])).toMatch(/^imported the writes of .*: 12\.0 KiB above/)
      expect(deviceOf()).toBe(device)
    }
    const again = await start()
    const restored = await boot()
    expect(await Promise.all([0, 9, sectors - 1].map((sector) => restored.read(sector)))).toEqual([
      full(1),
      full(2),
      full(3),
    ])
    for (const sector of [1, 80]) expect(await restored.read(sector)).toEqual(below(sector))
    expect(await restored.write(0, 8)).toBe('done')
    expect(await again.stop()).toBe(0)
    expect(readdirSync(path.join(at, 'caches-import'))).toEqual([])
  }
})

test('a damaged file, another base, and what is no such file are refused, and nothing changes', async () => {
  const { device, file } = await written()
  vdisk(['drop-cache', '--device', device])
  const bytes = readFileSync(file)
  const damaged = path.join(scratch.path, 'damaged.cache')
  const refuse = (words: RegExp, from = damaged, at = store) => {
    expect(vdisk(['caches', 'import', from], 1, at)).toMatch(words)
    expect(vdisk(['caches', '--json'], 0, at)).toBe('')
  }
  for (const at of [600, 1030, 1100, bytes.length - 5]) {
    const changed = Buffer.from(bytes)
    changed.writeUInt8(changed.readUInt8(at) ^ 1, at)
    writeFileSync(damaged, changed)
    refuse(/is damaged or incomplete: its checksums do not match/)
  }
  copyFileSync(file, damaged)
  truncateSync(damaged, bytes.length - 48)
  refuse(/is damaged or incomplete/)
  refuse(/is not a file of bootfarm-edge vdisk caches export/, files.kernel)
  refuse(/cannot be opened/, path.join(scratch.path, 'absent'))
  refuse(/the version has another root hash/, file, newStore(other))
  refuse(/There is no version/, file, newStore(files.vdisk, '7d5f0d1c-3a83-4c5b-9a50-0d5b8cb2a6ff'))
  expect(vdisk(['caches', 'export', damaged, '--device', device, '--force'], 1)).toMatch(/There is no write cache/)
  vdisk(['caches', 'import', file])
  expect(vdisk(['caches', 'export', path.join(scratch.path, 'absent/x'), '--device', device], 1)).toMatch(
    /cannot be created/,
  )
})

test('writes with a block that has changed on the disk are not exported, and the place is named', async () => {
  const { device, file } = await written()
  const layer = path.join(store, 'layers', device, 'data')
  const bytes = readFileSync(layer)
  bytes.writeUInt8(200, 4096 + 600)
  writeFileSync(layer, bytes)
  expect(vdisk(['caches', 'export', `${file}2`, '--device', device], 1)).toMatch(
    /are damaged: the block at byte 4096 has changed on the disk/,
  )
  expect(readdirSync(scratch.path).filter((name) => name.endsWith('.part'))).toEqual([])
})

const missing = slowFilesMissing()
const title = missing ? ` (${missing})` : ''
const blocks = sectors / 8
/** Requests in flight, where their order is not looked at. */
const together = 8
/** All blocks of the disk, and copies of them. */
const roomy = ['--write-cache-size', '64M']
/** The write of this number: no block is written twice within 512 of them. */
const numbered = (number: number) => ({ sector: ((number * 37) % blocks) * 8, byte: 1 + (number % 250) })

/** A running device that owns every block of its disk, and whose writes are counted. */
class BusyDevice {
  readonly #machine: StreamDevice
  /** Acknowledged writes: those before `acknowledged`, one after the other. */
  acknowledged = 0

  private constructor(machine: StreamDevice) {
    this.#machine = machine
  }

  static async boot(): Promise<BusyDevice> {
    const busy = new BusyDevice(await boot())
    for (; busy.acknowledged < blocks; busy.acknowledged += together)
      await Promise.all(Array.from({ length: together }, (_, index) => busy.#write(busy.acknowledged + index)))
    return busy
  }

  async #write(number: number): Promise<void> {
    const { sector, byte } = numbered(number)
    expect(await this.#machine.write(sector, byte)).toBe('done')
  }

  async writeOnce(): Promise<void> {
    await this.#write(this.acknowledged)
    this.acknowledged += 1
  }

  async writeUntil(isOver: () => boolean): Promise<void> {
    while (!isOver()) await this.writeOnce()
  }
}

/** Returns the first byte of each block, after so many writes. */
function bytesAfter(count: number): number[] {
  const bytes: number[] = []
  for (let number = Math.max(0, count - blocks); number < count; number += 1) {
    const { sector, byte } = numbered(number)
    bytes[sector / 8] = byte
  }
  return bytes
}

/** Reads the first byte of each block of a device's disk. */
async function bytesOf(machine: StreamDevice): Promise<number[]> {
  const bytes: number[] = []
  for (let block = 0; block < blocks; block += together) {
    const parts = Array.from({ length: together }, (_, index) => machine.read((block + index) * 8))
    for (const part of await Promise.all(parts)) {
      if (typeof part === 'string') throw new Error(part)
      expect(part.equals(full(part.readUInt8(0)))).toBe(true)
      bytes.push(part.readUInt8(0))
    }
  }
  return bytes
}

/** Starts a snapshot whose command takes its time for each packet, so that the edge has to wait for it. */
function slowSnapshot(device: string, file: string, more: string[] = []): RunningProcess {
  const words = ['vdisk', 'caches', 'snapshot', file, '--device', device, '--store', store, ...more]
  const delay = ['-f', '-qq', '-o', '/dev/null', '-e', 'trace=recvfrom', '-e', 'inject=recvfrom:delay_enter=100ms']
  const snapshot = new RunningProcess('strace', [...delay, edgeProgram, ...words])
  running.push(snapshot)
  return snapshot
}

/** Returns whether some of the file has come. */
const hasBegun = (file: string) => () => existsSync(`${file}.part`) && statSync(`${file}.part`).size > 0

/** Has a device write while a snapshot is taken; returns how many of its writes were acknowledged before and after. */
async function snapshotBeside(busy: BusyDevice, snapshot: RunningProcess): Promise<{ before: number; after: number }> {
  const before = busy.acknowledged
  let isOver = false
  const ended = snapshot.ended.finally(() => {
    isOver = true
  })
  await busy.writeUntil(() => isOver)
  expect(await ended, snapshot.output).toBe(0)
  expect(snapshot.output).toMatch(/^exported the writes of .*: 2\.0 MiB above/m)
  return { before, after: busy.acknowledged }
}

/** Expects the bytes of one moment, after which the edge had to read what the device changed. */
function expectOneMoment(found: number[], { before, after }: { before: number; after: number }): void {
  const moments = Array.from({ length: after - before + 1 }, (_, index) => before + index)
  const moment = moments.find((count) => bytesAfter(count).every((byte, block) => byte === found[block]))
  expect(moment).toBeDefined()
  const later = Array.from({ length: after - (moment ?? after) }, (_, index) => numbered((moment ?? 0) + index))
  expect(later.some(({ sector }) => sector / 8 >= blocks / 2)).toBe(true)
}

test.skipIf(missing)(
  `a snapshot of a device that writes on has its disk of one moment, which another store takes${title}`,
  async () => {
    const edge = await start(roomy)
    const busy = await BusyDevice.boot()
    const device = deviceOf()
    const file = path.join(scratch.path, 'running.cache')
    const written = await snapshotBeside(busy, slowSnapshot(device, file))
    expect(vdisk(['caches', 'snapshot', file, '--device', device], 1)).toMatch(/already exists; --force overwrites it/)
    expect(await edge.stop()).toBe(0)
    store = newStore(files.vdisk)
    expect(vdisk(['caches', 'import', file])).toMatch(/^imported the writes of .*: 2\.0 MiB above/)
    const again = await start(roomy)
    expectOneMoment(await bytesOf(await boot()), written)
    expect(await again.stop()).toBe(0)
  },
)

const privateDevice = testUuid(300)
const privateVdisk = testUuid(100)

/** Starts an enrolled edge, where the device has a private image and is assigned this one of two versions. */
async function startPrivate(name: string, assigned: number): Promise<RunningProcess> {
  const data = path.join(scratch.path, name)
  store = path.join(data, 'store')
  mkdirSync(store, { recursive: true })
  makeBootFiles(store, sectors)
  const versionOf = (index: number) => ({
    id: versionIdOf(index),
    number: index + 1,
    commandLine: '',
    sizeBytes: sectors * 512,
    diskPath: 'disk.raw',
    kernelPath: 'kernel',
    initrdPath: 'initrd',
  })
  const writeCache = { class: 'private', full: 'stop', limitBytes: 64 << 20 } as const
  writeEnrolledEdge(data, [], [], [], undefined, {
    vdisks: [{ id: privateVdisk, name: 'disk', versions: [versionOf(0), versionOf(1)], writeCache }],
    devices: [{ id: privateDevice, name: 'pc', mac, versionId: versionIdOf(assigned), enabled: true }],
  })
  const edge = await startLoopbackEdge(ports, ['--data', data, '--boot-files', files.bootFiles])
  running.push(edge)
  return edge
}

test.skipIf(missing)(
  `a snapshot of a private image that its device writes to is the image of one moment, above the version of then${title}`,
  async () => {
    const edge = await startPrivate('private', 0)
    const busy = await BusyDevice.boot()
    const file = path.join(scratch.path, 'private.cache')
    const without = vdisk(['caches', 'snapshot', file, '--device', privateDevice], 1)
    expect(without).toMatch(/There is no write cache of class edge_persistent/)
    const written = await snapshotBeside(busy, slowSnapshot(privateDevice, file, ['--private']))
    expect(await edge.stop()).toBe(0)
    // The other site assigns the next version.
    const other = await startPrivate('private-other', 1)
    vdisk(['caches', 'import', file, '--vdisk', privateVdisk])
    const device = await StreamDevice.boot(url, mac)
    devices.push(device)
    const welcome = await device.hello()
    expect(welcome).toMatchObject({ type: 'welcome', version_id: versionIdOf(0).replaceAll('-', '') })
    expectOneMoment(await bytesOf(device), written)
    expect(await other.stop()).toBe(0)
  },
)

test.skipIf(missing)(
  `a snapshot that is interrupted, or whose edge is killed, leaves no file and harms no write${title}`,
  async () => {
    const edge = await start(roomy)
    const busy = await BusyDevice.boot()
    const device = deviceOf()
    const file = path.join(scratch.path, 'cut.cache')
    const interrupted = slowSnapshot(device, file)
    await busy.writeUntil(hasBegun(file))
    const [command = ''] = readFileSync(`/proc/${interrupted.pid}/task/${interrupted.pid}/children`, 'utf8').split(' ')
    process.kill(Number(command), 'SIGTERM')
    await busy.writeUntil(() => !interrupted.isRunning)
    expect(await interrupted.ended).toBe(3)
    expect(readdirSync(scratch.path).filter((name) => name.startsWith('cut.'))).toEqual([])
    const cut = slowSnapshot(device, file)
    await busy.writeUntil(hasBegun(file))
    edge.kill('SIGKILL')
    expect(await cut.ended).toBe(1)
    expect(cut.output).toMatch(/The edge has ended/)
    // The command hears of it while the kernel still closes the edge's sockets, and its port still takes connections.
    await edge.ended
    expect(readdirSync(scratch.path).filter((name) => name.startsWith('cut.'))).toEqual([])
    expect(readdirSync(store).filter((name) => name.startsWith('snapshot'))).toEqual([])
    // Without a running device it is an export.
    expect(vdisk(['caches', 'snapshot', file, '--device', device])).toMatch(/^exported the writes of .*: 2\.0 MiB/)
    const again = await start(roomy)
    expect(await bytesOf(await boot())).toEqual(bytesAfter(busy.acknowledged))
    expect(await again.stop()).toBe(0)
  },
)
