import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { DesiredState } from '@bootfarm/proto/uplink'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { printedBoots } from '../lib/device/simulated-devices.ts'
import { StreamDevice } from '../lib/device/stream-device.ts'
import { testUuid, versionIdOf, writeEnrolledEdge } from '../lib/edge/enrolled-edge.ts'
import { edgeAddress, edgePorts, makeBootFiles, patterned, startLoopbackEdge } from '../lib/edge/loopback-edge.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

interface Line {
  version: string
  manifest: { root: string; counter: number }
}

const sectors = 256
const blockSectors = 8
const scratch = scratchDirectory()
const files = makeBootFiles(scratch.path, sectors)
const ports = await edgePorts()
const url = `http://${edgeAddress}:${ports.http}`
/** Each device writes or reads; each has its own version in the state. */
const [writer, reader, selfBooting] = ['02:bf:00:00:00:01', '02:bf:00:00:00:02', '02:bf:00:00:00:03']
const running: RunningProcess[] = []
const devices: StreamDevice[] = []

afterEach(async () => {
  for (const device of devices.splice(0)) device.close()
  await Promise.all(running.splice(0).map((process) => process.stop()))
})

/** Runs in its own mount namespace and ends with it, so nobody has to unmount anything. */
let holder: RunningProcess | undefined
let data: string
let store: string
let base: Line
let withoutKernel: Line

beforeAll(async () => {
  const hidden = path.join(scratch.path, 'edge')
  mkdirSync(path.join(hidden, 'store'), { recursive: true })
  const script = 'mount -t tmpfs -o size=4m,mode=755 tmpfs "$0" && echo mounted && exec cat'
  const small = ['--mount', 'sh', '-c', script, path.join(hidden, 'store')]
  holder = new RunningProcess('unshare', small, {}, 'pipe')
  await holder.waitFor(/mounted/)
  data = `/proc/${holder.pid}/root${hidden}`
  store = path.join(data, 'store')
  expect(vdisk('init')).toMatchObject({ status: 0 })
  const imported = (name: string, ...boot: string[]) => {
    const made = vdisk('import', files.vdisk, '--name', name, ...boot)
    expect(made, made.stderr).toMatchObject({ status: 0 })
    return JSON.parse(made.stdout.trim().split('\n').at(-1) ?? '') as Line
  }
  base = imported('Lab', '--kernel', files.kernel, '--initrd', files.initrd, '--cmdline', 'quiet')
  withoutKernel = imported('Self', '--no-boot-files')
})
afterAll(async () => {
  await holder?.stop()
  scratch.remove()
})

function vdisk(...words: string[]) {
  const { status, stdout, stderr } = spawnSync(edgeProgram, ['vdisk', ...words, '--store', store, '--json'], {
    encoding: 'utf8',
  })
  return { status, stdout, stderr }
}

/** Starts an edge whose control plane is unreachable and has assigned one device to write an update of each version. */
async function start(): Promise<RunningProcess> {
  const common = {
    sizeBytes: sectors * 512,
    diskPath: '',
    kernelPath: null,
    initrdPath: null,
    commandLine: '',
  }
  const vdisks: DesiredState['vdisks'] = [base, withoutKernel].map(({ version, manifest }, index) => ({
    id: testUuid(100 + index),
    name: 'disk',
    versions: [
      { ...common, id: version, number: 1, manifest },
      { ...common, id: versionIdOf(index), number: 2, layerAboveVersionId: version },
    ],
  }))
  const device = (index: number, mac: string, versionId: string, writes: boolean) => ({
    id: testUuid(300 + index),
    name: 'pc',
    mac,
    versionId,
    enabled: true,
    writes,
  })
  writeEnrolledEdge(data, [], [], [], undefined, {
    vdisks,
    devices: [
      device(0, writer, versionIdOf(0), true),
      device(1, reader, base.version, false),
      device(2, selfBooting, versionIdOf(1), true),
    ],
  })
  const edge = await startLoopbackEdge(ports, [
    '--data',
    data,
    '--boot-files',
    files.bootFiles,
    '--json',
    '--reserve',
    '0',
  ])
  running.push(edge)
  return edge
}

/** Starts a boot with an open session. */
async function boot(mac: string): Promise<StreamDevice> {
  const device = await StreamDevice.boot(url, mac)
  devices.push(device)
  expect(await device.hello()).toMatchObject({ type: 'welcome' })
  return device
}

describe('a device that writes a version in maintenance', () => {
  const full = (byte: number) => Buffer.alloc(512, byte)
  /** Returns what the unwritten disk has there. */
  const below = (sector: number) => patterned(sectors * 512).subarray(sector * 512, (sector + 1) * 512)
  const ballast = () => path.join(store, 'ballast')

  /** Others take all of the file system except this. */
  function leaveFree(bytes: number): void {
    const { bavail, bsize } = statfsSync(store)
    writeFileSync(ballast(), Buffer.alloc(bavail * bsize - bytes, 1))
    expect(statfsSync(store).bavail * bsize).toBe(bytes)
  }

  test('stops when the disk of the store is full, and loses nothing that was acknowledged; others boot, and it is sealed once there is space', async () => {
    const edge = await start()
    const device = await boot(writer)
    await device.report()
    expect(await device.write(0, 1)).toBe('done')
    leaveFree(4 * blockSectors * 512)
    const acknowledged = [0]
    let sector = blockSectors
    let code = await device.write(sector, 2)
    for (; code === 'done'; code = await device.write(sector, 2)) {
      acknowledged.push(sector)
      sector += blockSectors
    }
    expect(code).toBe('stopped')
    expect(acknowledged).toHaveLength(5)
    // It neither reads nor writes, so that no program continues with half of its files written.
    expect([await device.read(0), await device.write(0, 9), await device.flush()]).toEqual([
      'stopped',
      'stopped',
      'stopped',
    ])
    // An edge prints a finished boot again when it hears of another step.
    await device.report(undefined, 'stands')
    const [report] = await printedBoots(edge, 1, ({ guest }) => guest?.writeCache?.state === 'stopped')
    expect(report).toMatchObject({
      mac: writer,
      outcome: { kind: 'failed', cause: 'write_cache_full' },
      guest: { writeCache: { class: 'edge_persistent', state: 'stopped' } },
    })
    expect(edge.output).toMatch(/the disk of the store is full: .* is suspended/)

    const other = await boot(reader)
    for (const at of [0, sector, sectors - 1]) expect(await other.read(at)).toEqual(below(at))
    expect(await other.flush()).toBe('no_cache')
    expect(await edge.stop()).toBe(0)

    const seal = () => vdisk('seal', '--version', versionIdOf(0), '--parent', base.version, '--parent-boot-files')
    expect(seal()).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/The store .* has no space left: the disk is full/),
    })
    rmSync(ballast())

    const again = await start()
    const next = await boot(writer)
    for (const at of acknowledged) expect(await next.read(at), `sector ${at}`).toEqual(full(at === 0 ? 1 : 2))
    expect(await next.read(sector)).toEqual(below(sector))
    expect(await next.write(sector, 3)).toBe('done')
    expect(await again.stop()).toBe(0)

    expect(seal()).toMatchObject({ status: 0, stderr: '' })
    const image = path.join(scratch.path, 'sealed.raw')
    expect(vdisk('export', image, '--version', versionIdOf(0))).toMatchObject({ status: 0 })
    const expected = patterned(sectors * 512)
    for (const at of acknowledged) expected.fill(at === 0 ? 1 : 2, at * 512, (at + 1) * 512)
    expected.fill(3, sector * 512, (sector + 1) * 512)
    expect(readFileSync(image).equals(expected)).toBe(true)
  })

  test('gets a reason, and writes nothing, where the version boots by itself: its firmware would bypass what is written', async () => {
    const edge = await start()
    const script = await (await fetch(`${url}/m/${selfBooting}/boot.ipxe`)).text()
    expect(script).toMatch(/its device cannot write a disk that boots by itself/)
    expect(script).not.toMatch(/sanboot/)
    const [report] = await printedBoots(edge, 1)
    expect(report).toMatchObject({
      mac: selfBooting,
      outcome: {
        kind: 'failed',
        cause: 'write_cache_unusable',
        text: 'its device cannot write a disk that boots by itself',
      },
    })
  })
})
