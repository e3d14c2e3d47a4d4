import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { DesiredState } from '@bootfarm/proto/uplink'
import { afterAll, afterEach, expect, test } from 'vitest'
import { StreamDevice } from '../lib/device/stream-device.ts'
import { testUuid, writeEnrolledEdge } from '../lib/edge/enrolled-edge.ts'
import { edgeAddress, edgePorts, makeBootFiles, patterned, startLoopbackEdge } from '../lib/edge/loopback-edge.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'

const scratch = scratchDirectory()
const sectors = 4096
const files = makeBootFiles(scratch.path, sectors)
const mac = '02:bf:00:00:00:01'
const device = testUuid(300)
const edges = ['north', 'south'].map((name, index) => ({ id: testUuid(index + 1), name }))
const ports = [await edgePorts(), await edgePorts()] as const
const running: RunningProcess[] = []
const devices: StreamDevice[] = []

afterEach(async () => {
  for (const machine of devices.splice(0)) machine.close()
  await Promise.all(running.splice(0).map((process) => process.stop()))
})
afterAll(() => scratch.remove())

const full = (byte: number) => Buffer.alloc(512, byte)
const below = (sector: number) => patterned(sectors * 512).subarray(sector * 512, (sector + 1) * 512)
const from = ['--from', testUuid(1)]
const dataOf = (index: number) => path.join(scratch.path, edges[index]?.name ?? '')

function caches(index: number, words: string[], exit = 0): string {
  const at = ['--store', path.join(dataOf(index), 'store')]
  const { status, stdout, stderr } = spawnSync(edgeProgram, ['vdisk', 'caches', ...words, ...at], { encoding: 'utf8' })
  expect(status, stdout + stderr).toBe(exit)
  return stdout + stderr
}

/** Writes what both edges know: which of them keeps the device's writes. */
function writeStates(home: number): void {
  const known = ports.map(({ peer }, index) => ({
    id: testUuid(index + 1),
    weight: 10,
    subnets: [],
    draining: false,
    address: edgeAddress,
    peerPort: peer,
  }))
  const state: Partial<DesiredState> = {
    homeEdges: edges,
    siteEdges: { key: Buffer.alloc(32, 5).toString('base64'), edges: known },
  }
  const writeCache = { class: 'edge_persistent', full: 'stop', limitBytes: 64 << 20 } as const
  const paths = { diskPath: 'disk.raw', kernelPath: 'kernel', initrdPath: 'initrd' }
  for (const [index, { id }] of edges.entries()) {
    const store = path.join(dataOf(index), 'store')
    mkdirSync(store, { recursive: true })
    copyFileSync(files.vdisk, path.join(store, 'disk.raw'))
    for (const name of ['kernel', 'initrd'] as const) copyFileSync(files[name], path.join(store, name))
    const version = { sizeBytes: sectors * 512, ...paths, commandLine: '', writeCache, home }
    writeEnrolledEdge(dataOf(index), [mac], [version], [], undefined, { edgeId: id, ...state })
  }
}

async function start(index: 0 | 1): Promise<RunningProcess> {
  const edge = await startLoopbackEdge(ports[index], ['--data', dataOf(index), '--boot-files', files.bootFiles])
  running.push(edge)
  return edge
}

async function boot(index: 0 | 1): Promise<StreamDevice> {
  const machine = await StreamDevice.boot(`http://${edgeAddress}:${ports[index].http}`, mac)
  devices.push(machine)
  expect(await machine.hello()).toMatchObject({ type: 'welcome' })
  return machine
}

test('a device continues at the second edge from the copy of its writes when its edge is lost', async () => {
  writeStates(0)
  const [north, south] = [await start(0), await start(1)]
  const machine = await boot(0)
  for (const [sector, byte] of [
    [0, 1],
    [9, 2],
    [sectors - 1, 3],
  ] as const)
    expect(await machine.write(sector, byte)).toBe('done')
  // The device runs: its edge sends a snapshot.
  expect(caches(0, ['copy'])).toMatch(/^copied the writes of 1 devices, 12\.0 KiB of them new; 0 have not changed/)
  await south.waitFor(/Copies of 1 write caches of edge \S+ were brought up to date: 12288 bytes came/)
  expect(await machine.write(sectors - 16, 4)).toBe('done')
  expect(caches(0, ['copy'])).toMatch(/^copied the writes of 1 devices, 8\.00? KiB of them new/)
  // Of two areas, the one with the write.
  await south.waitFor(/were brought up to date: 8192 bytes came/)
  const [line = ''] = caches(1, ['copies', '--json']).split('\n')
  expect(JSON.parse(line)).toMatchObject({ device, class: 'edge_persistent', edge: edges[0]?.id, usedBytes: 16384 })
  expect(caches(1, ['--json'])).toBe('')
  // What is written later is lost with the edge.
  expect(await machine.write(0, 9)).toBe('done')
  expect(caches(1, ['restore-copy', '--device', device], 1)).toMatch(/needs --from EDGE, the edge that has kept the/)
  const restore = ['restore-copy', '--device', device, ...from]
  expect(caches(1, restore, 1)).toMatch(/The write owner of device \S+ is edge "north"/)
  north.kill('SIGKILL')
  await north.ended
  expect(await south.stop()).toBe(0)
  writeStates(1)
  const second = await start(1)
  // Another edge's copy of that device is none of the lost edge's.
  const other = ['restore-copy', '--device', device, '--from', testUuid(7)]
  expect(caches(1, other, 1)).toMatch(/There is no copy of class edge_persistent .* from edge/)
  expect(caches(1, restore)).toMatch(/^restored the writes of \S+ as edge \S+ had them \d+ s ago: 16\.0 KiB/)
  expect(caches(1, restore, 1)).toMatch(/has writes here already; --force replaces them/)
  const restored = await boot(1)
  const there = await Promise.all([0, 9, sectors - 16, sectors - 1].map((sector) => restored.read(sector)))
  expect(there).toEqual([full(1), full(2), full(4), full(3)])
  expect(await restored.read(1)).toEqual(below(1))
  expect(await restored.write(0, 7)).toBe('done')
  // The former owner has its layer still, and copies it no more.
  await start(0)
  expect(caches(0, ['--json'])).toContain(device)
  expect(caches(0, ['copy'])).toMatch(/^copied the writes of 0 devices/)
  expect(second.isRunning).toBe(true)
})

test('a damaged copy is refused with its place, and nothing is changed', async () => {
  writeStates(1)
  const south = await start(1)
  const machine = await boot(1)
  expect(await machine.write(0, 5)).toBe('done')
  expect(await south.stop()).toBe(0)
  expect(caches(1, ['restore-copy', '--device', testUuid(301), ...from], 1)).toMatch(/is not the write owner of device/)
  const { copy } = JSON.parse(caches(1, ['copies', '--json']).split('\n')[0] ?? '') as { copy: string }
  const areas = path.join(dataOf(1), 'store/cache-copies/held', testUuid(1), copy, 'areas')
  writeFileSync(areas, 'x', { flag: 'r+' })
  const restore = ['restore-copy', '--device', device, ...from, '--force']
  expect(caches(1, restore, 1)).toMatch(/is damaged .* in the MiB at byte 0/)
  const again = await start(1)
  const same = await boot(1)
  expect(await same.read(0)).toEqual(full(5))
  expect(again.isRunning).toBe(true)
})
