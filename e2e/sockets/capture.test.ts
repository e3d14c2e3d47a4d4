import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, statSync } from 'node:fs'
import path from 'node:path'
import { captureSizeMax } from '@bootfarm/proto/uplink'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { bootDevices, printedBoots } from '../lib/device/simulated-devices.ts'
import { makeBootFiles, serveArguments } from '../lib/edge/loopback-edge.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'
import { namespacesMissing, Segment } from '../lib/lab/segment.ts'

const packetsMax = 512
const missing = namespacesMissing()
const scratch = scratchDirectory()
let segment: Segment
const running: RunningProcess[] = []

describe.skipIf(missing)(`serve --capture${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(() => {
    segment = new Segment('capture')
    segment.addSwitchAddress()
  })
  afterEach(async () => {
    await Promise.all(running.splice(0).map((process) => process.stop()))
  })
  afterAll(() => {
    segment?.remove()
    scratch.remove()
  })

  async function startEdge(captures: string): Promise<RunningProcess> {
    const edge = segment.startOnEdge(edgeProgram, [
      'serve',
      '--listen',
      segment.edgeIp,
      '--dhcp',
      'server',
      '--dhcp-pool',
      segment.pool,
      '--silence-limit',
      '2',
      '--json',
      '--capture',
      captures,
      ...serveArguments(makeBootFiles(scratch.path, 64)),
    ])
    running.push(edge)
    await edge.waitFor(/serving on/)
    return edge
  }

  /** Returns the capture of this boot, once it is written. */
  async function captureOf(captures: string, bootId: string): Promise<string> {
    const file = path.join(captures, `${bootId}.pcap`)
    const written = new RunningProcess('bash', ['-c', `until [ -e ${file} ]; do sleep 0.02; done`])
    running.push(written)
    await written.ended
    return file
  }

  function read(file: string): string {
    return execFileSync('tcpdump', ['-r', file, '-nn', '-v', '-A', '-tttt'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })
  }

  test('keeps a boot’s packets up to its stream, both ways, in a file that tcpdump reads', async () => {
    const captures = path.join(scratch.path, 'captures')
    const edge = await startEdge(captures)
    const { exit, output } = await bootDevices(
      ['--server', segment.edgeIp, '--interface', 'br0', '--tftp-port', '69', '--breather-ms', '1', '--speed', '0'],
      (program, all) => segment.startOnSwitch(program, all),
    )
    expect(exit, output).toBe(0)
    const [boot] = await printedBoots(edge, 1)
    const text = read(await captureOf(captures, boot?.id ?? ''))
    for (const expected of [
      /DHCP-Message \(53\), length 1: Discover/,
      /DHCP-Message \(53\), length 1: Offer/,
      /DHCP-Message \(53\), length 1: Request/,
      /DHCP-Message \(53\), length 1: ACK/,
      /b\/[0-9a-f]{16}\/undionly\.kpxe/,
      /\.69 > |> 10\.78\.0\.1\.69:/,
      /Flags \[S\]/,
      /GET \/b\/[0-9a-f]{16}\/boot\.ipxe HTTP/,
      /GET \/b\/[0-9a-f]{16}\/kernel HTTP/,
    ])
      expect(text).toMatch(expected)
    expect(text).not.toMatch(/\.6910[ :]/)
    const [year] = text.match(/^\d{4}/) ?? []
    expect(year).toBe(String(new Date().getUTCFullYear()))
  })

  test('does not grow with a flood', async () => {
    const captures = path.join(scratch.path, 'flooded')
    const edge = await startEdge(captures)
    const program = path.resolve(import.meta.dirname, '../lib/device/flooding-device.ts')
    const mac = '02:bf:00:00:00:77'
    const flood = segment.startOnSwitch(process.execPath, [program, segment.edgeIp, mac, '3000'])
    running.push(flood)
    expect(await flood.ended, flood.output).toBe(0)
    const [boot] = await printedBoots(edge, 1, (line) => line.mac === mac && line.outcome !== undefined)
    const file = await captureOf(captures, boot?.id ?? '')
    expect(statSync(file).size).toBeLessThanOrEqual(captureSizeMax)
    const packets = execFileSync('tcpdump', ['-r', file, '-nn'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const count = packets.trim().split('\n').length
    expect(count).toBeGreaterThan(packetsMax / 2)
    expect(count).toBeLessThanOrEqual(packetsMax)
  })

  test('reports a directory that cannot be created', async () => {
    mkdirSync(path.join(scratch.path, 'files'), { recursive: true })
    const [file = ''] = readdirSync(scratch.path).filter((name) => name === 'kernel')
    const edge = segment.startOnEdge(edgeProgram, [
      'serve',
      '--listen',
      segment.edgeIp,
      '--dhcp',
      'proxy',
      '--capture',
      path.join(scratch.path, file),
      ...serveArguments(makeBootFiles(scratch.path, 64)),
    ])
    running.push(edge)
    expect(await edge.ended).toBe(1)
    expect(edge.output).toMatch(/The directory for captures \S+\/kernel cannot be created or written\./)
  })
})
