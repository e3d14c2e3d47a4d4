import { spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs'
import path from 'node:path'
import type { DesiredState } from '@bootfarm/proto/uplink'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { printedBoots } from '../lib/device/simulated-devices.ts'
import { StreamDevice } from '../lib/device/stream-device.ts'
import { testUuid, versionIdOf, writeEnrolledEdge } from '../lib/edge/enrolled-edge.ts'
import {
  edgeAddress,
  edgePorts,
  makeBootFiles,
  patterned,
  serveArguments,
  startLoopbackEdge,
} from '../lib/edge/loopback-edge.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'

const scratch = scratchDirectory()
const running: RunningProcess[] = []
const devices: StreamDevice[] = []
afterEach(async () => {
  for (const device of devices.splice(0)) device.close()
  await Promise.all(running.splice(0).map((process) => process.stop()))
})
afterAll(() => scratch.remove())

const sectors = 256
const files = makeBootFiles(scratch.path, sectors)
const mac = '02:bf:00:00:00:01'
const ports = await edgePorts()
const url = `http://${edgeAddress}:${ports.http}`
const data = path.join(scratch.path, 'data')
/** Returns what the unwritten disk has there. */
const below = (sector: number) => patterned(sectors * 512).subarray(sector * 512, (sector + 1) * 512)
/** 4 KiB each: 64K holds this many. */
const blocks = 16
const full = (byte: number) => Buffer.alloc(512, byte)

async function start(args: string[]): Promise<RunningProcess> {
  const edge = await startLoopbackEdge(ports, [...args, '--data', data, '--json'])
  running.push(edge)
  return edge
}
const startAlone = (...options: string[]) => start([...serveArguments(files), ...options])

async function kill(edge: RunningProcess): Promise<void> {
  edge.kill('SIGKILL')
  await edge.ended
}

/** Starts a boot with an open session. */
async function boot(): Promise<StreamDevice> {
  const device = await StreamDevice.boot(url, mac)
  devices.push(device)
  const welcome = await device.hello()
  expect(welcome).toMatchObject({ type: 'welcome' })
  return device
}

function vdisk(...words: string[]) {
  const { status, stdout, stderr } = spawnSync(
    edgeProgram,
    ['vdisk', ...words, '--store', path.join(data, 'store'), '--json'],
    { encoding: 'utf8' },
  )
  return { status, stdout, stderr }
}
const caches = () =>
  vdisk('caches')
    .stdout.split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as { layer: string; device: string; class: string; version: string })

/** The devices that the doctor names as ended by a restart of the edge; null if it names none. */
function endedByRestart(): string | null {
  const args = ['doctor', '--json', '--listen', edgeAddress, '--data', data, '--only', 'restart']
  const { status, stdout, stderr } = spawnSync(edgeProgram, args, { encoding: 'utf8' })
  if (status === null || stdout === '') throw new Error(stderr)
  const { ok, findings } = JSON.parse(stdout) as { ok: boolean; findings: { level: string; text: string }[] }
  expect([status, ok]).toEqual(findings[0]?.level === 'problem' ? [1, false] : [0, true])
  return findings[0]?.level === 'problem' ? findings[0].text : null
}

test('before an edge is restarted, the doctor names the devices whose writes end with it', async () => {
  rmSync(data, { recursive: true, force: true })
  const edge = await startAlone('--write-cache', 'edge')
  expect(endedByRestart()).toBe(null)
  const device = await boot()
  expect(await device.report()).toBe('report_ack')
  // The journal is written once a second.
  while (endedByRestart() === null) if (!edge.isRunning) throw new Error(edge.output)
  expect(endedByRestart()).toBe(`When the edge ends, these devices lose their writes, and restart (1): ${mac}.`)
  await kill(edge)
  await startAlone('--write-cache', 'edge')
  expect(await device.read(3)).toBe('no_session')
  expect(await device.hello()).toBe('cache_lost')
})

test('writes at an edge go with the boot, and with the edge: then they are lost, and nothing below is read', async () => {
  rmSync(data, { recursive: true, force: true })
  const edge = await startAlone('--write-cache', 'edge')
  const first = await boot()
  expect(await first.write(3, 0x77)).toBe('done')
  expect(await first.read(3)).toEqual(full(0x77))
  expect(await first.read(4)).toEqual(below(4))
  const second = await boot()
  expect(await second.read(3)).toEqual(below(3))
  expect(await second.write(3, 0x78)).toBe('done')
  expect(caches()).toEqual([])
  await kill(edge)
  await startAlone('--write-cache', 'edge')
  expect(await second.read(3)).toBe('no_session')
  expect(await second.hello()).toBe('cache_lost')
})

test('a persistent write cache outlives its edge and the boot, and stops its device when it is full', async () => {
  rmSync(data, { recursive: true, force: true })
  const persistent = ['--write-cache', 'edge_persistent']
  const before = await startAlone(...persistent, '--write-cache-size', '64K')
  const first = await boot()
  expect(await first.write(0, 1)).toBe('done')
  await kill(before)
  const edge = await startAlone(...persistent, '--write-cache-size', '64K')
  expect(await first.hello()).toMatchObject({ type: 'welcome' })
  expect(await first.read(0)).toEqual(full(1))
  const second = await boot()
  await second.report()
  for (let block = 1; block < blocks; block++) expect(await second.write(8 * block, 2)).toBe('done')
  // There is no space for one more block.
  expect(await second.write(8 * blocks, 3)).toBe('stopped')
  expect([await second.read(0), await second.write(0, 9), await second.flush()]).toEqual([
    'stopped',
    'stopped',
    'stopped',
  ])
  const [report] = await printedBoots(edge, 1, ({ outcome }) => outcome?.kind === 'failed')
  expect(report).toMatchObject({ outcome: { kind: 'failed', cause: 'write_cache_full' } })
  // At the next start it holds what was acknowledged; with the other setting the device continues read-only.
  await kill(edge)
  await startAlone(...persistent, '--write-cache-size', '64K', '--write-cache-full', 'read_only')
  const third = await boot()
  expect(await third.write(0, 4)).toBe('done')
  expect(await third.write(8 * blocks, 3)).toBe('cache_full')
  expect([await third.write(0, 9), await third.flush()]).toEqual(['cache_full', 'done'])
  expect([await third.read(0), await third.read(8), await third.read(8 * blocks)]).toEqual([
    full(4),
    full(2),
    below(8 * blocks),
  ])
})

test('a block that has changed on the disk while the edge was down is never delivered, and is named', async () => {
  rmSync(data, { recursive: true, force: true })
  const before = await startAlone('--write-cache', 'edge_persistent')
  const device = await boot()
  for (const sector of [0, 8, 16]) expect(await device.write(sector, 1)).toBe('done')
  expect(await before.stop()).toBe(0)
  const [cache] = caches()
  if (!cache) throw new Error('There is no write cache.')
  const file = openSync(path.join(data, 'store/layers', cache.layer, 'data'), 'r+')
  writeSync(file, Buffer.from([2]), 0, 1, 8 * 512 + 300)
  closeSync(file)
  const edge = await startAlone('--write-cache', 'edge_persistent')
  expect(await device.hello()).toMatchObject({ type: 'welcome' })
  expect(await device.read(0)).toEqual(full(1))
  expect(await device.read(8)).toBe('cache_lost')
  expect([await device.read(16), await device.write(16, 3)]).toEqual(['cache_lost', 'cache_lost'])
  await edge.waitFor(/the block at byte 4096 has changed on the disk/)
  // Its next boot has the rest. Only writing the whole block again replaces it.
  expect(await edge.stop()).toBe(0)
  await startAlone('--write-cache', 'edge_persistent')
  const next = await boot()
  expect(await next.read(16)).toEqual(full(1))
  expect(await next.read(8)).toBe('cache_lost')
})

test('memory first: a restarted edge gives a device that has sent nothing a new slot, and says which', async () => {
  rmSync(data, { recursive: true, force: true })
  const overflow = ['--write-cache', 'device_ram_overflow', '--write-cache-size', '64K']
  const edge = await startAlone(...overflow)
  const first = await StreamDevice.boot(url, mac)
  devices.push(first)
  const before = await first.hello()
  expect(before).toMatchObject({ write_cache: 'device_ram_overflow', write_cache_size: '0000000000010000' })
  await kill(edge)
  await startAlone(...overflow)
  const after = await first.hello()
  expect(after).toMatchObject({ type: 'welcome', write_cache: 'device_ram_overflow' })
  expect(idOf(after, 'write_cache_id')).not.toBe(idOf(before, 'write_cache_id'))
  for (let block = 0; block < blocks; block++) expect(await first.write(8 * block, 2)).toBe('done')
  expect(await first.write(8 * blocks, 3)).toBe('stopped')
})

describe('memory first, then the device’s own disk', () => {
  const local = ['--write-cache', 'device_ram_local_disk', '--write-cache-size', '64M']
  const size = 100
  const say = (device: StreamDevice, word: string, body: string) => {
    const [address = ''] = device.script.match(/(?<=bootfarm\.report=)\S+/) ?? []
    return fetch(`${address}/${word}`, { method: 'POST', body })
  }
  /** An edge prints a finished boot again when it hears of another step. */
  const report = async (device: StreamDevice, used: number) => {
    await device.report({ used, size })
    await device.report({ used, size }, `step of ${used}`)
  }
  const printed = async (edge: RunningProcess, state: string) =>
    (await printedBoots(edge, 1, ({ guest }) => guest?.writeCache?.state === state))[0]

  test('is passed to the kernel beside its token, and the edge takes no writes', async () => {
    rmSync(data, { recursive: true, force: true })
    const edge = await startAlone(...local)
    const device = await StreamDevice.boot(url, mac)
    devices.push(device)
    expect(device.script).toMatch(/ bootfarm\.overflow=local_disk,stop,67108864 /)
    expect(await device.hello()).toMatchObject({ type: 'welcome', write_cache: 'device_ram' })
    expect(await device.write(0, 1)).toBe('no_cache')
    // The device decides when it is full.
    await report(device, size)
    expect(await printed(edge, 'stopped')).toMatchObject({
      outcome: { kind: 'failed', cause: 'write_cache_full' },
      guest: { writeCache: { class: 'device_ram_local_disk', usedBytes: size, sizeBytes: size } },
    })
  })

  test('continues read-only where that is configured, and is lost with its disk, also once it is up', async () => {
    rmSync(data, { recursive: true, force: true })
    const edge = await startAlone(...local, '--write-cache-full', 'read_only')
    const device = await boot()
    expect((await say(device, 'ready', '')).status).toBe(204)
    await report(device, size)
    expect(await printed(edge, 'read_only')).toMatchObject({ outcome: { kind: 'ready' } })
    await say(device, 'failed', 'cache_lost the local disk has failed')
    await report(device, 1)
    expect(await printed(edge, 'lost')).toMatchObject({
      outcome: { kind: 'ready' },
      guest: { writeCache: { class: 'device_ram_local_disk' } },
    })
  })
})

const idOf = (welcome: unknown, name: 'version_id' | 'write_cache_id') => (welcome as Record<typeof name, string>)[name]

describe('a device’s own image', () => {
  const vdiskId = testUuid(100)
  const version = (index: number) => ({
    id: versionIdOf(index),
    number: index + 1,
    commandLine: '',
    sizeBytes: sectors * 512,
    diskPath: 'disk.raw',
    kernelPath: 'kernel',
    initrdPath: 'initrd',
  })
  /** Starts an edge whose control plane is unreachable and has assigned this version to the device. */
  async function startEnrolled(index: number, counter: number): Promise<RunningProcess> {
    mkdirSync(path.join(data, 'store'), { recursive: true })
    makeBootFiles(path.join(data, 'store'), sectors)
    const writeCache = { class: 'private', full: 'stop' } as const
    const state: Partial<DesiredState> = {
      counter,
      vdisks: [{ id: vdiskId, name: 'disk', versions: [version(index), version(1 - index)], writeCache }],
    }
    const device = { id: testUuid(300), name: 'pc', mac, versionId: versionIdOf(index), enabled: true }
    writeEnrolledEdge(data, [], [], [], undefined, { ...state, devices: [device] })
    return start(['--boot-files', files.bootFiles])
  }

  test('stays with its version across promotions, until it is dropped, which is refused while it runs', async () => {
    rmSync(data, { recursive: true, force: true })
    const before = await startEnrolled(0, 1)
    const first = await boot()
    expect(await first.write(5, 0x55)).toBe('done')
    await kill(before)
    await startEnrolled(1, 2)
    const promoted = await StreamDevice.boot(url, mac)
    devices.push(promoted)
    expect(idOf(await promoted.hello(), 'version_id')).toBe(versionIdOf(0).replaceAll('-', ''))
    expect(await promoted.read(5)).toEqual(full(0x55))
    expect(caches()).toMatchObject([{ device: testUuid(300), class: 'private', version: versionIdOf(0) }])
    const drop = () => vdisk('drop-cache', '--device', testUuid(300), '--private')
    expect(drop()).toMatchObject({ status: 1, stderr: expect.stringMatching(/shut it down first/) })
    const edge = running.at(-1)
    if (edge) await kill(edge)
    expect(drop()).toMatchObject({ status: 0 })
    expect(drop()).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/There is no write cache of class private for the device/),
    })
    await startEnrolled(1, 2)
    // Its writes are gone, and the boot that had them never continues with the version alone.
    expect(await promoted.hello()).toBe('cache_lost')
    const anew = await StreamDevice.boot(url, mac)
    devices.push(anew)
    expect(idOf(await anew.hello(), 'version_id')).toBe(versionIdOf(1).replaceAll('-', ''))
    expect(await anew.read(5)).toEqual(below(5))
  })

  test('is refused, and never replaced, where its version is gone', async () => {
    rmSync(data, { recursive: true, force: true })
    const options = ['--write-cache', 'private', '--write-cache-of-another-version', 'discard']
    const before = await startAlone(...options)
    const first = await boot()
    expect(await first.write(5, 0x55)).toBe('done')
    await kill(before)
    const other = makeBootFiles(path.join(scratch.path), sectors)
    expect(other.vdisk).toBe(files.vdisk)
    await start([...serveArguments(other), ...options])
    const script = await (await fetch(`${url}/m/${mac}/boot.ipxe`)).text()
    expect(script).toMatch(/the version below its private image is missing: reset the image/)
    expect(caches()).toMatchObject([{ class: 'private' }])
  })
})
