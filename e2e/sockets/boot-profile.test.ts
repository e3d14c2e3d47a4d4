import { closeSync, copyFileSync, ftruncateSync, openSync, readdirSync, writeFileSync, writeSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { freePorts } from '../../scripts/lib/free-ports.mjs'
import { bootDevices, type DeviceResult } from '../lib/device/simulated-devices.ts'
import {
  type BootFiles,
  type EdgePorts,
  edgeAddress,
  edgeFigures,
  edgePorts,
  makeBootFiles,
  patterned,
  startLoopbackEdge,
} from '../lib/edge/loopback-edge.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

interface ReadingAhead extends DeviceResult {
  reads: number
  demandReads: number
  aheadHits: number
  aheadWaits: number
  aheadBytes: number
  aheadUsedBytes: number
}
interface Shown {
  version: string
  hardware: string
  boots: number
  readAheadBytes: number
  carriedFrom: string | null
}

const diskSize = 32 << 20
const readsOfTrace = 120
const scratch = scratchDirectory()
const store = path.join(scratch.path, 'store')
const trace = path.join(scratch.path, 'trace.csv')
const changed = path.join(scratch.path, 'changed.raw')
let files: BootFiles
let ports: EdgePorts
let version = ''
let update = ''

async function vdisk(args: string[]): Promise<RunningProcess> {
  const running = new RunningProcess(edgeProgram, ['vdisk', ...args, '--store', store])
  expect(await running.ended, running.output).toBe(0)
  return running
}

async function importDisk(file: string, args: string[]): Promise<string> {
  const boot = ['--kernel', files.kernel, '--initrd', files.initrd, '--cmdline', 'quiet']
  const made = await vdisk(['import', file, ...boot, ...args, '--json'])
  return made.jsonLines<{ version?: string }>().at(-1)?.version ?? ''
}

const shown = async (id: string) => [
  ...(await vdisk(['profile', 'show', '--version', id, '--json'])).jsonLines<Shown>(),
]

/** Lasts until the test has ended. */
async function serve(id: string, args: string[] = []): Promise<RunningProcess> {
  const edge = await startLoopbackEdge(ports, [
    '--store',
    store,
    '--version',
    id,
    '--boot-files',
    files.bootFiles,
    ...args,
  ])
  onTestFinished(async () => {
    await edge.stop()
  })
  return edge
}

/** Starts an edge that has read a profile's blocks into its memory before any boot. */
async function serveWarm(id: string): Promise<RunningProcess> {
  const [port = 0] = await freePorts(1)
  const edge = await serve(id, ['--metrics', String(port)])
  const warmed = async () => (await edgeFigures(port)).bootfarm_edge_profile_warmed_bytes_total
  await expect.poll(warmed).toBeGreaterThan(0)
  return edge
}

/** Boots one device; every byte that it reads is compared with `disk`. */
async function bootOne(disk: string, readAhead = '16'): Promise<ReadingAhead> {
  const { exit, devices, output } = await bootDevices([
    '--server',
    edgeAddress,
    '--dhcp-port',
    String(ports.dhcp),
    '--tftp-port',
    String(ports.tftp),
    '--trace',
    trace,
    '--speed',
    '1',
    '--breather-ms',
    '0',
    '--verify',
    disk,
    '--read-ahead-mib',
    readAhead,
  ])
  expect(exit, output).toBe(0)
  return devices[0] as ReadingAhead
}

/** The version has one profile, from this many boots. */
const untilLearned = (id: string, boots: number) =>
  expect.poll(async () => (await shown(id)).map((profile) => profile.boots)).toEqual([boots])

beforeAll(async () => {
  ports = await edgePorts()
  files = makeBootFiles(scratch.path, 1)
  const fd = openSync(files.vdisk, 'r+')
  ftruncateSync(fd, diskSize)
  for (let at = 0; at < diskSize; at += 4 << 20) writeSync(fd, patterned(1 << 20), 0, 1 << 20, at)
  closeSync(fd)
  copyFileSync(files.vdisk, changed)
  const other = openSync(changed, 'r+')
  writeSync(other, Buffer.alloc(1 << 20, 0x5a), 0, 1 << 20, 4 << 20)
  closeSync(other)
  const lines = Array.from({ length: readsOfTrace }, (_, index) => {
    // All over the disk, nothing twice; a pause after each, in which a device reads ahead.
    const offset = ((index * 53) % readsOfTrace) * 64 * 4096
    return `${index * 2},${offset},${4096 * ((index % 16) + 1)}`
  })
  writeFileSync(trace, ['time_ms,offset,length', ...lines, ''].join('\n'))
  await vdisk(['init'])
  version = await importDisk(files.vdisk, ['--name', 'Lab'])
  update = await importDisk(changed, ['--parent', version])
})
afterAll(() => scratch.remove())

test('the next boot has what the first boots read when it needs it, across a restart and in a new version', async () => {
  const first = await serve(version)
  const cold = await bootOne(files.vdisk)
  expect(cold).toMatchObject({ aheadBytes: 0, demandReads: readsOfTrace })
  await untilLearned(version, 1)
  const warm = await bootOne(files.vdisk)
  expect(warm.aheadHits + warm.aheadWaits, JSON.stringify(warm)).toBeGreaterThan(readsOfTrace * 0.5)
  expect(warm.aheadUsedBytes).toBeGreaterThan(0.8 * warm.aheadBytes)
  await untilLearned(version, 2)
  const [profile] = await shown(version)
  expect(profile).toMatchObject({ hardware: 'simulated', carriedFrom: null })
  const unaided = await bootOne(files.vdisk, '0')
  expect(unaided.reads).toBe(readsOfTrace)
  await untilLearned(version, 3)
  // For learning, a boot that read ahead counts like one that did not.
  expect((await shown(version))[0]?.readAheadBytes).toBe(profile?.readAheadBytes)
  expect(await first.stop()).toBe(0)

  const again = await serveWarm(version)
  const restarted = await bootOne(files.vdisk)
  expect(restarted.aheadHits + restarted.aheadWaits, JSON.stringify(restarted)).toBeGreaterThan(readsOfTrace * 0.5)
  await untilLearned(version, 4)
  expect(await again.stop()).toBe(0)

  const ofUpdate = await serveWarm(update)
  await untilLearned(update, 0)
  const carried = await bootOne(changed)
  expect(carried.aheadHits + carried.aheadWaits, JSON.stringify(carried)).toBeGreaterThan(readsOfTrace * 0.4)
  await untilLearned(update, 1)
  expect(await ofUpdate.stop()).toBe(0)
  const [ofParent] = await shown(version)
  const [begun] = await shown(update)
  expect(begun?.carriedFrom).toBe(version)
  // Differences from the parent were left out, and have been learned again since.
  expect(begun?.readAheadBytes).toBe(ofParent?.readAheadBytes)
})

test('it can be switched off, its figures are on the metrics page, and damaged profiles are learned again', async () => {
  const off = await serve(version, ['--boot-profile', 'off'])
  const unaided = await bootOne(files.vdisk)
  expect(unaided).toMatchObject({ aheadBytes: 0, demandReads: readsOfTrace })
  expect(await off.stop()).toBe(0)

  const cleared = await vdisk(['profile', 'clear', '--version', version, '--json'])
  expect([...cleared.jsonLines()]).toEqual([{ cleared: 1 }])
  expect(await shown(version)).toEqual([])
  const [metrics = 0] = await freePorts(1)
  const on = await serve(version, ['--metrics', String(metrics)])
  await bootOne(files.vdisk)
  await untilLearned(version, 1)
  await bootOne(files.vdisk)
  await untilLearned(version, 2)
  const learned = async () => (await edgeFigures(metrics)).bootfarm_edge_profile_boots_total
  await expect.poll(learned).toBe(2)
  const seen = await edgeFigures(metrics)
  expect(seen.bootfarm_edge_profile_handed_total).toBeGreaterThan(0)
  expect(seen.bootfarm_edge_profile_used_bytes_total).toBeGreaterThan(0)
  expect(seen.bootfarm_edge_profile_used_bytes_total).toBeLessThanOrEqual(
    seen.bootfarm_edge_profile_ahead_bytes_total ?? 0,
  )
  expect(await on.stop()).toBe(0)

  const directory = path.join(store, 'profiles')
  for (const name of readdirSync(directory)) {
    if (!name.startsWith(version)) continue
    const fd = openSync(path.join(directory, name), 'r+')
    writeSync(fd, 'damaged', 200)
    closeSync(fd)
  }
  const careful = await serve(version)
  const anew = await bootOne(files.vdisk)
  expect(anew).toMatchObject({ aheadBytes: 0, demandReads: readsOfTrace })
  // The thread that reads profiles has the lowest priority, so a boot may be over first.
  await expect.poll(() => careful.output).toMatch(/boot profile .* is damaged; it is dropped/)
  await untilLearned(version, 1)
  expect(await careful.stop()).toBe(0)
})
