import { readdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, afterEach, expect, test } from 'vitest'
import type { DeviceResult } from '../lib/device/simulated-devices.ts'
import { printedBoots } from '../lib/device/simulated-devices.ts'
import { StreamDevice } from '../lib/device/stream-device.ts'
import {
  edgeAddress,
  edgeFigures,
  edgePorts,
  makeBootFiles,
  patterned,
  serveArguments,
  startLoopbackEdge,
  untilListening,
} from '../lib/edge/loopback-edge.ts'
import { scratchDirectory, simProgram } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

const scratch = scratchDirectory()
const running: RunningProcess[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map((process) => process.stop()))
})
afterAll(() => scratch.remove())

const deviceCount = 24
const sectors = 8192
const readSize = 32768
/** Eight seconds of reads, and longer with each exchange: several happen while they last. */
const reads = Array.from({ length: 80 }, (_, index) => `${index * 100},${(index % 128) * readSize},${readSize}`)
const files = makeBootFiles(scratch.path, sectors)
const disk = patterned(sectors * 512)
const trace = path.join(scratch.path, 'trace.csv')
writeFileSync(trace, `time_ms,offset,length\n${reads.join('\n')}\n`)
const ports = await edgePorts()
const { dhcp: metricsPort } = await edgePorts()
const exchangeCount = 3
const roundMs = 20
const url = `http://${edgeAddress}:${ports.http}`

async function start(data: string, ...options: string[]): Promise<RunningProcess> {
  const directory = path.join(scratch.path, data)
  const edge = await startLoopbackEdge(ports, [...serveArguments(files), '--data', directory, '--json', ...options])
  running.push(edge)
  return edge
}

const startsOf = (edge: RunningProcess) => edge.output.split('serving on ').length - 1

/** Exchanges the program, and resolves when the next one serves. */
async function exchange(edge: RunningProcess): Promise<void> {
  const before = startsOf(edge)
  edge.kill('SIGUSR2')
  await edge.waitUntil('the next start', () => (startsOf(edge) > before ? true : undefined))
}

/** The sockets of a process by their kernel's number, those at the edge's ports only. */
function socketsAtPorts(pid: number): string[] {
  const wanted = new Set(Object.values(ports).map((port) => port.toString(16).toUpperCase().padStart(4, '0')))
  const bound = ['tcp', 'udp'].flatMap((name) =>
    readFileSync(`/proc/net/${name}`, 'utf8')
      .split('\n')
      .slice(1)
      .map((line) => line.trim().split(/\s+/))
      .filter(([, local = '', remote = '']) => wanted.has(local.slice(-4)) && remote.endsWith(':0000'))
      .map((fields) => `socket:[${fields[9]}]`),
  )
  const own = openFiles(pid).map(({ name }) => name)
  return bound.filter((socket) => own.includes(socket)).sort()
}

/** What a process has open; what it closes meanwhile is left out. */
function openFiles(pid: number): { name: string; inode: number }[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    const link = `/proc/${pid}/fd/${fd}`
    try {
      return [{ name: readlinkSync(link), inode: statSync(link).ino }]
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
      throw error
    }
  })
}

const below = (sector: number) => disk.subarray(sector * 512, (sector + 1) * 512)
const full = (byte: number) => Buffer.alloc(512, byte)

test.each([
  ['one thread', '1'],
  ['three threads', '3'],
])('devices of %s read on while the program is exchanged again and again', async (_, shards) => {
  const edge = await start(`reads-${shards}`, '--stream-shards', shards, '--metrics', String(metricsPort))
  const { pid } = edge
  const before = socketsAtPorts(pid)
  expect(before.length).toBe(4 + Number(shards))
  const server = ['--server', edgeAddress, '--dhcp-port', String(ports.dhcp), '--tftp-port', String(ports.tftp)]
  const read = ['--devices', String(deviceCount), '--trace', trace, '--breather-ms', '1', '--verify', files.vdisk]
  const sim = new RunningProcess(simProgram, ['boot', '--json', ...server, ...read])
  running.push(sim)
  await untilListening(edge, metricsPort)
  // Before that the exchange would wait for the devices' downloads.
  while ((await edgeFigures(metricsPort)).bootfarm_edge_streams_open !== deviceCount)
    if (!sim.isRunning) throw new Error(sim.output)
  for (let count = 0; count < exchangeCount; count++) await exchange(edge)
  expect(await sim.ended, sim.output).toBe(0)
  expect(edge.pid).toBe(pid)
  expect(socketsAtPorts(pid)).toEqual(before)
  const devices = sim.jsonLines<DeviceResult>()
  expect(devices.map(({ outcome }) => outcome)).toEqual(Array(deviceCount).fill('ready'))
  for (const { resumptions } of devices) expect(resumptions).toBeGreaterThan(0)
  // Each boot is reported once as over, by whichever process it ended in.
  const boots = await printedBoots(edge, deviceCount)
  expect(boots.map(({ outcome }) => outcome?.kind)).toEqual(Array(deviceCount).fill('ready'))
})

test('a persistent write cache is read back after exchanges, and nothing is lost in between', async () => {
  const edge = await start('writes', '--write-cache', 'edge_persistent', '--store', path.join(scratch.path, 'store'))
  const device = await StreamDevice.boot(url, '02:bf:00:00:02:01')
  expect(await device.hello()).toMatchObject({ type: 'welcome' })
  for (let count = 1; count <= 5; count++) {
    expect(await device.write(count, count)).toBe('done')
    await exchange(edge)
    expect(await device.read(count)).toBe('no_session')
    expect(await device.hello()).toMatchObject({ type: 'welcome' })
    for (let sector = 1; sector <= count; sector++) expect(await device.read(sector)).toEqual(full(sector))
    expect(await device.read(count + 1)).toEqual(below(count + 1))
  }
  device.close()
})

/** The files of write caches that a process has open, by inode; they have no names. */
function cacheFiles(pid: number): string[] {
  return openFiles(pid)
    .filter(({ name }) => name.includes('(deleted)'))
    .map(({ name, inode }) => `${name} ${inode}`)
    .sort()
}

test('write caches that end with the process survive ten exchanges, in which devices read and write', async () => {
  const store = path.join(scratch.path, 'store')
  const edge = await start('volatile', '--write-cache', 'edge', '--store', store)
  const devices: StreamDevice[] = []
  for (let number = 1; number <= 6; number++) devices.push(await StreamDevice.boot(url, `02:bf:00:00:03:0${number}`))
  for (const device of devices) expect(await device.hello()).toMatchObject({ type: 'welcome' })
  let isEnding = false
  let resumptions = 0
  /** Writes and reads on, and checks every byte, until the last exchange is over. */
  const work = async (device: StreamDevice, number: number) => {
    const written = new Map<number, number>()
    const resumed = async <T extends Buffer | string>(ask: () => Promise<T>): Promise<T> => {
      for (;;) {
        const answer = await ask()
        if (answer !== 'no_session') return answer
        expect(await device.hello()).toMatchObject({ type: 'welcome' })
        resumptions += 1
      }
    }
    const expectSector = async (sector: number) => {
      const byte = written.get(sector)
      expect(await resumed(() => device.read(sector))).toEqual(byte === undefined ? below(sector) : full(byte))
    }
    for (let round = 0; !isEnding || round < 20; round++) {
      // Over the whole disk, so that its map has more than one part.
      const [sector, byte] = [(round * 977 + number) % sectors, 1 + ((round + number) % 255)]
      expect(await resumed(() => device.write(sector, byte))).toBe('done')
      written.set(sector, byte)
      await expectSector((round * 31) % sectors)
      // Six devices that never rest would take the processor from the edge.
      await pause(roundMs)
    }
    for (const sector of written.keys()) await expectSector(sector)
  }
  const working = devices.map((device, index) => work(device, index))
  const failed = Promise.race(working)
  const before = cacheFiles(edge.pid)
  expect(before.length).toBe(2 * devices.length)
  for (let count = 0; count < 10; count++) {
    await Promise.race([exchange(edge), failed.then(() => Promise.reject(new Error('a device has ended')))])
    expect(cacheFiles(edge.pid)).toEqual(before)
  }
  isEnding = true
  await Promise.all(working)
  expect(resumptions).toBeGreaterThanOrEqual(devices.length)
  expect(edge.output).toMatch(/6 write caches are taken over/)
  expect(edge.output).not.toMatch(/cannot be taken over/)
  // A start in any other way ends them.
  edge.kill('SIGKILL')
  await edge.ended
  await start('volatile', '--write-cache', 'edge', '--store', store)
  for (const device of devices) {
    expect(await device.read(0)).toBe('no_session')
    expect(await device.hello()).toBe('cache_lost')
    device.close()
  }
})

test('without a data directory the edge goes on as it is', async () => {
  const edge = await startLoopbackEdge(ports, serveArguments(files))
  running.push(edge)
  edge.kill('SIGUSR2')
  await edge.waitFor(/USR2 is ignored/)
  expect(startsOf(edge)).toBe(1)
})
