import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { bootReport } from '@bootfarm/proto/uplink'
import { afterAll, afterEach, expect, test } from 'vitest'
import { bootDevices, phasesOfPxeBoot, printedBoots } from '../lib/device/simulated-devices.ts'
import { StreamDevice } from '../lib/device/stream-device.ts'
import {
  edgeAddress,
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
const bare: StreamDevice[] = []
afterEach(async () => {
  for (const device of bare.splice(0)) device.close()
  await Promise.all(running.splice(0).map((process) => process.stop()))
})
afterAll(() => scratch.remove())

/** So many that one of two shards has none of them in one of 10^9 runs: a session's shard is random. */
const deviceCount = 32
const sectors = 8192
const readSize = 32768
const reads = Array.from({ length: 96 }, (_, index) => `${index * 4},${(index % 128) * readSize},${readSize}`)
const files = makeBootFiles(scratch.path, sectors)
const disk = patterned(sectors * 512)
const trace = path.join(scratch.path, 'trace.csv')
writeFileSync(trace, `time_ms,offset,length\n${reads.join('\n')}\n`)
const ports = await edgePorts()
const { dhcp: metricsPort } = await edgePorts()
const url = `http://${edgeAddress}:${ports.http}`

async function start(...options: string[]): Promise<RunningProcess> {
  const shards = ['--stream-shards', '2', '--metrics', String(metricsPort), '--json']
  const edge = await startLoopbackEdge(ports, [...serveArguments(files), ...shards, ...options])
  running.push(edge)
  await untilListening(edge, metricsPort)
  return edge
}

const deviceArguments = (count: number) => [
  '--server',
  edgeAddress,
  '--dhcp-port',
  String(ports.dhcp),
  '--tftp-port',
  String(ports.tftp),
  '--devices',
  String(count),
  '--trace',
  trace,
  '--breather-ms',
  '1',
  '--verify',
  files.vdisk,
]

/** Returns the values of one metric by shard, and by reason where it has one. */
async function byShard(name: string): Promise<number[]> {
  const text = await (await fetch(`http://${edgeAddress}:${metricsPort}/metrics`)).text()
  return [...text.matchAll(new RegExp(`^bootfarm_edge_${name}{shard="\\d+"(?:,reason="\\w+")?} (\\d+)$`, 'gm'))].map(
    ([, value]) => Number(value),
  )
}

/** Returns the metric once it fits: the shards' counts reach the page every other second. */
async function untilByShard(name: string, fits: (values: number[]) => boolean): Promise<number[]> {
  const limit = Date.now() + 120_000
  for (;;) {
    const values = await byShard(name)
    if (fits(values)) return values
    if (Date.now() > limit) throw new Error(`${name} by shard is ${values.join(', ')}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

const sum = (values: number[]) => values.reduce((total, value) => total + value, 0)

/** Starts boots with open sessions, on any shards. */
async function bareBoots(count: number): Promise<StreamDevice[]> {
  const devices: StreamDevice[] = []
  for (let number = 1; number <= count; number++) {
    const device = await StreamDevice.boot(url, `02:bf:00:00:01:${number.toString(16).padStart(2, '0')}`)
    bare.push(device)
    devices.push(device)
    expect(await device.hello()).toMatchObject({ type: 'welcome' })
  }
  return devices
}

const below = (sector: number) => disk.subarray(sector * 512, (sector + 1) * 512)

test('devices of two shards get their bytes, each shard serves some, and the reports are as with one', async () => {
  const edge = await start()
  const { exit, devices, output } = await bootDevices(deviceArguments(deviceCount))
  expect(exit, output).toBe(0)
  expect(devices.map(({ outcome }) => outcome)).toEqual(Array(deviceCount).fill('ready'))
  const boots = (await printedBoots(edge, deviceCount)).map((boot) => bootReport.parse(boot))
  for (const boot of boots) {
    expect(boot.outcome).toEqual({ kind: 'ready' })
    expect(boot.phases.map(({ name }) => name)).toEqual(phasesOfPxeBoot)
    const stage2 = boot.phases.find(({ name }) => name === 'stage2')
    // One READ each, and more where one was split.
    expect(stage2?.reads).toBeGreaterThanOrEqual(reads.length)
    expect(stage2?.reads).toBeLessThan(2 * reads.length)
    expect(stage2?.bytesOut).toBeGreaterThan(reads.length * readSize)
  }
  const sessions = await untilByShard('stream_shard_sessions', (shards) => sum(shards) === deviceCount)
  expect(sessions).toHaveLength(2)
  // The shard that served a session's reads has that session.
  const served = await untilByShard('stream_shard_reads_total', (shards) =>
    sessions.every((count, shard) => (shards[shard] ?? 0) >= count * reads.length),
  )
  for (const count of served) expect(count).toBeGreaterThanOrEqual(reads.length)
  expect(await byShard('stream_shard_lost_total')).toEqual([0, 0, 0, 0])
})

test('a device whose packets come from another port in mid-boot continues, on any shard', async () => {
  await start()
  const devices = await bareBoots(deviceCount)
  for (const [index, device] of devices.entries()) expect(await device.read(index)).toEqual(below(index))
  const before = await untilByShard('stream_shard_reads_total', (shards) => sum(shards) >= devices.length)
  expect(Math.min(...before), before.join(', ')).toBeGreaterThan(0)
  for (const [index, device] of devices.entries()) {
    device.changePort()
    expect(await device.read(index)).toBe('no_session')
    expect(await device.hello()).toMatchObject({ type: 'welcome' })
    expect(await device.read(100 + index)).toEqual(below(100 + index))
    await device.report()
    expect(await device.read(200 + index)).toEqual(below(200 + index))
  }
  const sessions = await untilByShard('stream_shard_sessions', (shards) => sum(shards) === devices.length)
  expect(Math.min(...sessions), sessions.join(', ')).toBeGreaterThan(0)
})

test('a device reads what it wrote, though its packets reach any shard: the first one serves all its reads', async () => {
  await start('--write-cache', 'edge', '--data', path.join(scratch.path, 'writes'))
  const devices = await bareBoots(deviceCount)
  for (const [index, device] of devices.entries()) {
    expect(await device.read(7)).toEqual(below(7))
    expect(await device.write(7, index + 1)).toBe('done')
    expect(await device.read(7)).toEqual(Buffer.alloc(512, index + 1))
    expect(await device.read(8)).toEqual(below(8))
  }
  await untilByShard('stream_shard_forwarded_total', ([, second = 0]) => second > 0)
  expect((await byShard('stream_shard_sessions'))[1]).toBe(0)
})

test('boots of two shards continue across kill -9 of the edge and stay one boot each', async () => {
  const data = ['--data', path.join(scratch.path, 'killed')]
  const killed = await start(...data)
  const devices = new RunningProcess(simProgram, ['boot', '--json', ...deviceArguments(deviceCount), '--speed', '0.03'])
  running.push(devices)
  await untilByShard('stream_shard_sessions', (shards) => sum(shards) === deviceCount)
  await untilByShard('stream_shard_reads_total', (shards) => Math.min(...shards) > 8)
  killed.kill('SIGKILL')
  await killed.ended
  const edge = await start(...data)
  expect(await devices.ended, devices.output).toBe(0)
  const boots = await printedBoots(edge, deviceCount)
  for (const boot of boots) {
    expect(boot.outcome).toEqual({ kind: 'ready' })
    expect(boot.reconnects).toBe(1)
    expect(boot.phases.map(({ name }) => name)).toEqual(phasesOfPxeBoot)
  }
  expect(Math.min(...(await byShard('stream_shard_reads_total')))).toBeGreaterThan(0)
})
