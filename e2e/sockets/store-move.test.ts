import { spawnSync } from 'node:child_process'
import { readlinkSync, renameSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { afterAll, afterEach, expect, test } from 'vitest'
import { StreamDevice } from '../lib/device/stream-device.ts'
import { edgeAddress, edgePorts, makeBootFiles, patterned, startLoopbackEdge } from '../lib/edge/loopback-edge.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

const scratch = scratchDirectory()
const sectors = 2048
const files = makeBootFiles(scratch.path, sectors)
const disk = patterned(sectors * 512)
const version = '6d5f0d1c-3a83-4c5b-9a50-0d5b8cb2a6ff'
const ports = await edgePorts()
const running: RunningProcess[] = []
const devices: StreamDevice[] = []

afterEach(async () => {
  for (const device of devices.splice(0)) device.close()
  await Promise.all(running.splice(0).map((process) => process.stop()))
})
afterAll(() => scratch.remove())

const below = (sector: number) => disk.subarray(sector * 512, (sector + 1) * 512)
const full = (byte: number) => Buffer.alloc(512, byte)

function vdisk(words: string[], store: string, exit = 0): string {
  const { status, stdout, stderr } = spawnSync(edgeProgram, ['vdisk', ...words, '--store', store], { encoding: 'utf8' })
  expect(status, stdout + stderr).toBe(exit)
  return stdout + stderr
}

/** Makes a store, and a symbolic link to it. */
function makeStore(name: string): { directory: string; store: string } {
  const [directory, store] = [path.join(scratch.path, `${name}-old`), path.join(scratch.path, name)]
  vdisk(['init'], directory)
  const boot = ['--kernel', files.kernel, '--initrd', files.initrd, '--cmdline', 'quiet']
  vdisk(['import', files.vdisk, '--name', 'Lab', '--version', version, ...boot], directory)
  symlinkSync(directory, store)
  return { directory, store }
}

async function serve(store: string, cache: string): Promise<RunningProcess> {
  const args = ['--store', store, '--data', `${store}-data`, '--version', version, '--boot-files', files.bootFiles]
  const edge = await startLoopbackEdge(ports, [...args, '--json', '--write-cache', cache])
  running.push(edge)
  return edge
}

async function bootDevice(mac = '02:bf:00:00:00:01'): Promise<StreamDevice> {
  const device = await StreamDevice.boot(`http://${edgeAddress}:${ports.http}`, mac)
  devices.push(device)
  expect(await device.hello()).toMatchObject({ type: 'welcome' })
  return device
}

/** Reads from the store until the move has ended. */
async function moveWhileReading(device: StreamDevice, store: string, next: string): Promise<RunningProcess> {
  const moving = new RunningProcess(edgeProgram, ['vdisk', 'move', next, '--store', store])
  for (let sector = 16; moving.isRunning; sector = 16 + ((sector + 8) % (sectors - 32)))
    expect(await device.read(sector)).toEqual(below(sector))
  return moving
}

test('a store moves while a device reads from it, and a reload of the edge brings the device there', async () => {
  const { directory, store } = makeStore('read')
  const edge = await serve(store, 'device_ram')
  const device = await bootDevice()
  const next = path.join(scratch.path, 'read-new')
  const moving = await moveWhileReading(device, store, next)
  expect(await moving.ended, moving.output).toBe(0)
  expect(moving.output).toMatch(/moved 1 versions and the writes of 0 devices/)
  expect(readlinkSync(store)).toBe(next)
  // Until the reload it reads at the old place, which nobody changes any more.
  expect(await device.read(2000)).toEqual(below(2000))
  const { pid } = edge
  const starts = () => edge.output.split('serving on ').length - 1
  edge.kill('SIGUSR2')
  let waited = 0
  for (let isResumed = false; !isResumed; ) {
    const before = performance.now()
    const isNew = starts() === 2
    const answer = await device.read(16)
    if (answer === 'no_session') expect(await device.hello()).toMatchObject({ type: 'welcome' })
    else expect(answer).toEqual(below(16))
    isResumed = isNew && answer !== 'no_session'
    waited = Math.max(waited, performance.now() - before)
  }
  console.log(`the device waited at most ${Math.round(waited)} ms for an answer`)
  expect(edge.pid).toBe(pid)
  // Nothing of the old place is needed.
  renameSync(directory, `${directory}-away`)
  for (let sector = 0; sector < sectors; sector += 64) expect(await device.read(sector)).toEqual(below(sector))
  expect(vdisk(['gc'], `${directory}-away`, 1)).toMatch(/cannot be changed/)
  vdisk(['verify'], store)
  vdisk(['gc'], store)
})

test('writes of devices move when their devices do not run, and no write is taken at the old place', async () => {
  const { directory, store } = makeStore('write')
  const edge = await serve(store, 'edge_persistent')
  const device = await bootDevice()
  expect(await device.write(9, 2)).toBe('done')
  const next = path.join(scratch.path, 'write-new')
  const refused = await moveWhileReading(device, store, next)
  expect(await device.write(10, 3)).toBe('done')
  expect(await refused.ended, refused.output).toBe(4)
  expect(refused.output).toMatch(/The device .* runs, and keeps its writes in this store/)
  expect(vdisk(['list'], next, 1)).toMatch(/is not a store of vDisks/)
  expect(readlinkSync(store)).toBe(directory)
  expect(await edge.stop()).toBe(0)
  expect(vdisk(['move', next], store)).toMatch(/moved 1 versions and the writes of 1 devices .*; reload the edge/)
  expect(vdisk(['move', path.join(scratch.path, 'other')], directory, 1)).toMatch(/cannot be changed/)
  renameSync(directory, `${directory}-away`)
  await serve(store, 'edge_persistent')
  const back = await bootDevice()
  expect(await Promise.all([9, 10, 11].map((sector) => back.read(sector)))).toEqual([full(2), full(3), below(11)])
  expect(await back.write(11, 4)).toBe('done')
})
