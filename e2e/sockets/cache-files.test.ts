import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { StreamDevice } from '../lib/device/stream-device.ts'
import { edgeAddress, edgePorts, makeBootFiles, patterned, startLoopbackEdge } from '../lib/edge/loopback-edge.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'

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

async function start(): Promise<RunningProcess> {
  const args = ['--store', store, '--data', `${store}-data`, '--version', version, '--boot-files', files.bootFiles]
  const edge = await startLoopbackEdge(ports, [...args, '--json', '--write-cache', 'edge_persistent'])
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
