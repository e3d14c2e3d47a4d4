import { spawnSync } from 'node:child_process'
import { closeSync, cpSync, openSync, readFileSync, readSync, writeFileSync, writeSync } from 'node:fs'
import path from 'node:path'
import { afterAll, afterEach, expect, test } from 'vitest'
import { StreamDevice } from '../lib/device/stream-device.ts'
import { edgeAddress, edgePorts, makeBootFiles, patterned, startLoopbackEdge } from '../lib/edge/loopback-edge.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

interface Line {
  version?: string
  manifest?: { root: string; counter: number }
  copied?: string
  writtenBytes?: number
  versions?: number
  caches?: number
  problem?: string
  atByte?: number
  error?: string
}

const scratch = scratchDirectory()
const sectors = 2048
const files = makeBootFiles(scratch.path, sectors)
const disk = patterned(sectors * 512)
const mac = '02:bf:00:00:00:01'
const first = '6d5f0d1c-3a83-4c5b-9a50-0d5b8cb2a6ff'
const second = '7d5f0d1c-3a83-4c5b-9a50-0d5b8cb2a6ff'
const boot = ['--kernel', files.kernel, '--initrd', files.initrd, '--cmdline', 'quiet']
const ports = await edgePorts()
const running: RunningProcess[] = []
const devices: StreamDevice[] = []
let stores = 0

afterEach(async () => {
  for (const device of devices.splice(0)) device.close()
  await Promise.all(running.splice(0).map((process) => process.stop()))
})
afterAll(() => scratch.remove())

const place = (name: string) => path.join(scratch.path, `${name}-${stores++}`)
const full = (byte: number) => Buffer.alloc(512, byte)
const below = (sector: number) => disk.subarray(sector * 512, (sector + 1) * 512)

/** Returns all that the command printed. */
function vdisk(words: string[], store: string, exit = 0): string {
  const { status, stdout, stderr } = spawnSync(edgeProgram, ['vdisk', ...words, '--store', store], { encoding: 'utf8' })
  expect(status, stdout + stderr).toBe(exit)
  return stdout + stderr
}

function lines(words: string[], store: string, exit = 0): Line[] {
  const output = vdisk([...words, '--json'], store, exit).split('\n')
  return output.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as Line)
}

function makeStore(): string {
  const store = place('store')
  vdisk(['init'], store)
  vdisk(['import', files.vdisk, '--name', 'Lab', '--version', first, ...boot], store)
  return store
}

/** Makes an update of the first version, of which 64 KiB differ. */
function makeUpdate(store: string): void {
  const image = path.join(scratch.path, 'update.raw')
  writeFileSync(image, Buffer.from(disk).fill(9, 512 << 10, 576 << 10))
  vdisk(['import', image, '--parent', first, '--version', second, ...boot], store)
}

async function serve(store: string): Promise<RunningProcess> {
  const args = ['--store', store, '--data', `${store}-data`, '--version', first, '--boot-files', files.bootFiles]
  const edge = await startLoopbackEdge(ports, [...args, '--json', '--write-cache', 'edge_persistent'])
  running.push(edge)
  return edge
}

async function bootDevice(): Promise<StreamDevice> {
  const device = await StreamDevice.boot(`http://${edgeAddress}:${ports.http}`, mac)
  devices.push(device)
  expect(await device.hello()).toMatchObject({ type: 'welcome' })
  return device
}

/** Inverts a byte of a file. */
function flip(file: string, at: number): void {
  const handle = openSync(file, 'r+')
  const byte = Buffer.alloc(1)
  expect(readSync(handle, byte, 0, 1, at)).toBe(1)
  writeSync(handle, Buffer.from([~byte.readUInt8(0) & 0xff]), 0, 1, at)
  closeSync(handle)
}

const rootsOf = (store: string) => lines(['list'], store).map((line) => [line.version, line.manifest?.root])

test('a store is backed up while a device reads and writes it, and restored with its versions and writes', async () => {
  const store = makeStore()
  const backup = place('backup')
  const edge = await serve(store)
  const machine = await bootDevice()
  expect(await machine.write(9, 2)).toBe('done')
  const copying = new RunningProcess(edgeProgram, ['vdisk', 'backup', backup, '--store', store, '--json'])
  for (let sector = 16; copying.isRunning; sector = 16 + ((sector + 8) % (sectors - 32)))
    expect(await machine.read(sector)).toEqual(below(sector))
  expect(await copying.ended, copying.output).toBe(0)
  expect(copying.jsonLines<Line>().at(-1)).toMatchObject({ versions: 1, caches: 1, problems: 0 })
  // The next one has what is new: a version, of which 64 KiB differ, and a later write.
  expect(await machine.write(10, 3)).toBe('done')
  makeUpdate(store)
  const more = lines(['backup', backup], store)
  expect(more.filter((line) => line.copied).map((line) => line.copied)).toEqual([second])
  expect(more.at(-1)?.writtenBytes).toBeLessThan(160 << 10)
  const none = lines(['backup', backup], store).at(-1)
  expect(none).toMatchObject({ versions: 2, caches: 1, writtenBytes: 0 })
  expect(await edge.stop()).toBe(0)
  for (const device of devices.splice(0)) device.close()

  const restored = place('restored')
  const result = lines(['restore', backup], restored).at(-1)
  expect(result).toMatchObject({ versions: 2, caches: 1, problems: 0 })
  expect(rootsOf(restored)).toEqual(rootsOf(store))
  vdisk(['verify'], restored)
  expect(vdisk(['restore', backup], restored, 1)).toMatch(/is not empty; choose an empty directory/)
  expect(vdisk(['restore', backup], store, 1)).toMatch(/is not empty/)
  const again = await serve(restored)
  const back = await bootDevice()
  expect(await Promise.all([9, 10, 11].map((sector) => back.read(sector)))).toEqual([full(2), full(3), below(11)])
  expect(await again.stop()).toBe(0)
  // A version that it makes has a counter that the lost store cannot have used.
  const image = path.join(scratch.path, 'update.raw')
  const made = lines(['import', image, '--parent', first, ...boot], restored).at(-1)
  expect(made?.manifest?.counter).toBeGreaterThan(1_000_000)
  // It continues the backup, and the store that it replaces no longer can.
  expect(lines(['backup', backup], restored).at(-1)).toMatchObject({ versions: 3, problems: 0 })
  expect(vdisk(['backup', backup], store, 1)).toMatch(/has the backup of another copy of this store/)
})

test('a backup and a restore that are killed are continued, and are recognized until then', async () => {
  const store = makeStore()
  const backup = place('backup')
  const slow = ['--store', store, '--rate-mib', '1', '--json']
  const killed = new RunningProcess(edgeProgram, ['vdisk', 'backup', backup, ...slow])
  await killed.waitFor(/"progress"/)
  killed.kill('SIGKILL')
  await killed.ended
  const restored = place('restored')
  expect(vdisk(['restore', backup], restored, 1)).toMatch(/was never completed: run the backup again/)
  const whole = lines(['backup', place('whole')], store).at(-1)?.writtenBytes ?? 0
  const rest = lines(['backup', backup], store).at(-1)
  expect(rest).toMatchObject({ versions: 1, problems: 0 })
  expect(rest?.writtenBytes).toBeLessThan(whole)

  const args = ['vdisk', 'restore', backup, '--store', restored, '--rate-mib', '1', '--json']
  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    const interrupted = new RunningProcess(edgeProgram, args)
    await interrupted.waitFor(/"progress"/)
    interrupted.kill(signal)
    expect(await interrupted.ended, interrupted.output).toBe(signal === 'SIGKILL' ? signal : 3)
    expect(vdisk(['list'], restored, 1)).toMatch(/is not a store of vDisks/)
  }
  expect(lines(['restore', backup], restored).at(-1)).toMatchObject({ versions: 1, problems: 0 })
  vdisk(['verify'], restored)
  expect(rootsOf(restored)).toEqual(rootsOf(store))
})

test('a damaged store, a damaged backup, and directories that are none are named', () => {
  const store = makeStore()
  const backup = place('backup')
  vdisk(['backup', backup], store)
  expect(vdisk(['backup', path.join(store, 'backup')], store, 1)).toMatch(/contain one another/)
  expect(vdisk(['backup', files.bootFiles], store, 1)).toMatch(/contains other files; choose an empty directory/)
  expect(vdisk(['backup', backup], makeStore(), 1)).toMatch(/has the backup of another store/)
  expect(vdisk(['restore', files.bootFiles], place('restored'), 1)).toMatch(/is not a backup/)
  // Nothing changes a backup, and everything reads it.
  vdisk(['verify', '--version', first], path.join(backup, 'store'))
  expect(vdisk(['gc'], path.join(backup, 'store'), 1)).toMatch(/cannot be changed: its lock file does not exist/)
  // A backup that rots is repaired from the store.
  const extent = path.join('extents', '000001')
  flip(path.join(backup, 'store', extent), 5000)
  expect(lines(['restore', backup], place('restored'), 1)).toContainEqual(
    expect.objectContaining({ version: first, problem: 'a block is damaged' }),
  )
  expect(lines(['backup', backup, '--check'], store).at(-1)).toMatchObject({ problems: 0 })
  vdisk(['restore', backup], place('restored'))
  // A store that rots keeps what its backup has, and names what the backup cannot get.
  flip(path.join(store, extent), 5000)
  expect(lines(['backup', backup], store).at(-1)).toMatchObject({ versions: 1, problems: 0 })
  expect(lines(['backup', place('other')], store, 1)).toContainEqual(
    expect.objectContaining({ version: first, problem: 'a block is damaged', atByte: expect.any(Number) }),
  )
  vdisk(['restore', backup], place('restored'))
  // A directory with half a record is not overwritten.
  const copy = place('copy')
  cpSync(backup, copy, { recursive: true })
  const record = path.join(copy, 'bootfarm-backup')
  writeFileSync(record, readFileSync(record).subarray(0, 20))
  expect(vdisk(['backup', copy], store, 1)).toMatch(/its file bootfarm-backup is damaged/)
})
