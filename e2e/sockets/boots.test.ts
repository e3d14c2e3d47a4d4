import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { bootDevices, phasesOfPxeBoot, printedBoots } from '../lib/device/simulated-devices.ts'
import { type BootFiles, makeBootFiles, serveArguments } from '../lib/edge/loopback-edge.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'
import { namespacesMissing, Segment } from '../lib/lab/segment.ts'

const missing = namespacesMissing()
const deviceCount = 6
const sectorCount = 16 * 2048
const scratch = scratchDirectory()
const files: BootFiles = makeBootFiles(scratch.path, sectorCount)
const trace = path.join(scratch.path, 'trace.csv')
const traceSize = writeTrace(trace, 600, 5)

let segment: Segment
const running: RunningProcess[] = []

afterAll(() => scratch.remove())

/**
 * Writes a trace of reads of all sizes up to 128 KiB over the whole disk, one every `intervalMs`; returns their total
 * size in bytes.
 */
function writeTrace(file: string, reads: number, intervalMs: number): number {
  const sizes = [512, 4096, 16384, 131072, 1536]
  let size = 0
  const lines = Array.from({ length: reads }, (_, index) => {
    const length = sizes[index % sizes.length] ?? 512
    const offset = ((index * 7919) % (sectorCount - 256)) * 512
    size += length
    return `${(index * intervalMs).toFixed(3)},${offset},${length}`
  })
  writeFileSync(file, `time_ms,offset,length\n${lines.join('\n')}\n`)
  return size
}

function startEdge(...args: string[]): RunningProcess {
  const serve = ['serve', '--listen', segment.edgeIp, '--json', ...serveArguments(files), ...args]
  const edge = segment.startOnEdge(edgeProgram, serve)
  running.push(edge)
  return edge
}

async function untilListening(edge: RunningProcess): Promise<void> {
  const script = `until (exec 3<>/dev/tcp/${segment.edgeIp}/6980) 2>/dev/null; do sleep 0.05; done`
  const probe = segment.startOnEdge('bash', ['-c', script])
  running.push(probe)
  await Promise.race([
    probe.ended,
    edge.ended.then((end) => {
      throw new Error(`the edge ended with ${end}:\n${edge.output}`)
    }),
  ])
}

const boot = (...args: string[]) =>
  bootDevices(
    [
      '--server',
      segment.edgeIp,
      '--interface',
      segment.deviceInterface,
      '--breather-ms',
      '100',
      '--devices',
      String(deviceCount),
      '--trace',
      trace,
      '--verify',
      files.vdisk,
      ...args,
    ],
    (program, all) => segment.startOnSwitch(program, all),
  )

/** Returns what a scraper on the edge's own machine reads, once this line is there. */
async function metricsWith(line: string): Promise<string> {
  const ask = `exec 3<>/dev/tcp/127.0.0.1/9464; printf 'GET /metrics HTTP/1.1\\r\\nHost: edge\\r\\n\\r\\n' >&3; cat <&3`
  const script = `until page=$(${ask}) && [[ $page == *'${line}'* ]]; do sleep 0.05; done; echo "$page"`
  const scraper = segment.startOnEdge('bash', ['-c', script])
  running.push(scraper)
  await scraper.ended
  return scraper.output
}

/** Runs a program on the switch to its end; returns its output. */
async function outputOf(program: string, ...args: string[]): Promise<string> {
  const process = segment.startOnSwitch(program, args)
  running.push(process)
  expect(await process.ended, process.output).toBe(0)
  return process.output.trimEnd()
}

/** Returns the switch's own MAC address. */
const ownMac = () => outputOf('cat', `/sys/class/net/${segment.deviceInterface}/address`)

describe.skipIf(missing !== undefined)(`on their own segment${missing ? ` (${missing})` : ''}`, () => {
  beforeEach(() => {
    segment = new Segment('boots')
  })
  afterEach(async () => {
    await Promise.all(running.splice(0).map((process) => process.stop()))
    segment.remove()
  })

  test('six devices boot by DHCP server, TFTP, HTTP and stream, every byte right and every phase reported', async () => {
    const edge = startEdge('--dhcp', 'server', '--dhcp-pool', '10.78.0.100-10.78.0.150', '--metrics', '9464')
    await untilListening(edge)
    const { exit, devices, output } = await boot()
    expect(exit, output).toBe(0)
    expect(devices.map(({ outcome, readBytes }) => [outcome, readBytes])).toEqual(
      Array.from({ length: deviceCount }, () => ['ready', traceSize]),
    )
    const boots = await printedBoots(edge, deviceCount)
    expect(boots).toHaveLength(deviceCount)
    for (const { outcome, phases, simulated, ip } of boots) {
      expect(outcome).toEqual({ kind: 'ready' })
      expect(phases.map(({ name }) => name)).toEqual(phasesOfPxeBoot)
      expect(simulated).toBe(true)
      expect(ip).toMatch(/^10\.78\.0\.1\d\d$/)
    }
    const numbers = await metricsWith(`boots_total{outcome="ready"} ${deviceCount}`)
    expect(numbers).toContain('text/plain; version=0.0.4')
    expect(numbers).toContain(`bootfarm_edge_boot_phase_duration_seconds_count{phase="nbp"} ${deviceCount}\n`)
    const sent = /sent_bytes_total\{transport="stream"\} (\d+)/.exec(numbers)
    expect(Number(sent?.[1])).toBeGreaterThanOrEqual(traceSize * deviceCount)
  })

  test('devices with fixed addresses behind a router boot by proxyDHCP where their network is trusted', async () => {
    segment.routeThroughSwitch('10.79.0.0/24')
    const edge = startEdge('--dhcp', 'proxy', '--trust-mac-from', '10.79.0.0/24')
    await untilListening(edge)
    const { exit, output } = await boot('--bind', '10.79.0.100')
    expect(exit, output).toBe(0)
    for (const { outcome } of await printedBoots(edge, deviceCount)) expect(outcome).toEqual({ kind: 'ready' })
  })

  test('a script goes to the device whose MAC address the neighbour table shows, and to nobody else', async () => {
    segment.routeThroughSwitch('10.79.0.0/24')
    const edge = startEdge('--dhcp', 'proxy', '--metrics', '9464')
    await untilListening(edge)
    const ask = (mac: string, from: string) => {
      const url = `http://${segment.edgeIp}:6980/m/${mac}/boot.ipxe`
      return outputOf('curl', '-sS', '-m', '10', '--interface', from, '-w', '\n%{http_code}', url)
    }
    const own = await ownMac()
    expect(await ask(own, segment.switchIp)).toMatch(/^#!ipxe\n[\s\S]*\n200$/)
    expect(await ask('02:bf:00:00:00:01', segment.switchIp)).toMatch(/another MAC address\.\n\n403$/)
    expect(await ask(own, '10.79.0.7')).toMatch(/is behind a router, start the edge with .*--trust-mac-from\.\n\n403$/)
    await metricsWith('ignored_total{reason="device_unconfirmed"} 2')
  })

  test.each([1, 10])(
    'with %i of 100 UDP packets lost every device becomes ready and every byte is right',
    async (percent) => {
      segment.loseEach(percent, 'udp')
      const edge = startEdge('--dhcp', 'server', '--dhcp-pool', '10.78.0.100-10.78.0.150')
      await untilListening(edge)
      const { exit, devices, output } = await boot()
      expect(exit, output).toBe(0)
      expect(devices.reduce((sum, { repeats }) => sum + repeats, 0)).toBeGreaterThan(0)
      const boots = await printedBoots(edge, deviceCount)
      expect(boots.every(({ outcome }) => outcome?.kind === 'ready')).toBe(true)
    },
  )

  test('an edge killed with -9 in mid-boot comes back and the devices continue: the same boots, one each', async () => {
    const data = path.join(scratch.path, 'data')
    const options = ['--data', data, '--dhcp', 'server', '--dhcp-pool', '10.78.0.100-10.78.0.150']
    const first = startEdge(...options)
    await untilListening(first)
    const booting = boot()
    // Loading takes 4 MB for all six; beyond 20 MB each is in the middle of its disk.
    const bytesSent = '/sys/class/net/edge0/statistics/tx_bytes'
    const streaming = segment.startOnEdge('bash', [
      '-c',
      `until [ $(cat ${bytesSent}) -gt 20000000 ]; do sleep 0.02; done`,
    ])
    running.push(streaming)
    await streaming.ended
    first.kill('SIGKILL')
    await first.ended
    const second = startEdge(...options)
    const { exit, devices, output } = await booting
    expect(exit, output).toBe(0)
    expect(devices.filter(({ resumptions }) => resumptions > 0).length).toBeGreaterThan(0)
    const boots = await printedBoots(second, deviceCount)
    expect(boots).toHaveLength(deviceCount)
    for (const { outcome, phases, reconnects } of boots) {
      expect(outcome).toEqual({ kind: 'ready' })
      expect(phases.map(({ name }) => name)).toEqual(phasesOfPxeBoot)
      expect(reconnects).toBeGreaterThanOrEqual(1)
    }
  })
})
