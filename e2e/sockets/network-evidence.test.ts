import { writeFileSync } from 'node:fs'
import path from 'node:path'
import type { BootReport } from '@bootfarm/proto/uplink'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { bootDevices, printedBoots } from '../lib/device/simulated-devices.ts'
import { makeBootFiles, serveArguments } from '../lib/edge/loopback-edge.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'
import { namespacesMissing, Segment } from '../lib/lab/segment.ts'

const missing = namespacesMissing(['ethtool'])
const scratch = scratchDirectory()
const readSize = 8192
const readCount = 1024
const devices = 4
const files = makeBootFiles(scratch.path, (readSize * readCount) / 512)
const trace = path.join(scratch.path, 'trace.csv')
writeFileSync(
  trace,
  `time_ms,offset,length\n${Array.from({ length: readCount }, (_, index) => `${index}.000,${index * readSize},${readSize}`).join('\n')}\n`,
)

let segment: Segment
const running: RunningProcess[] = []
afterAll(() => scratch.remove())

async function bootAll(): Promise<BootReport[]> {
  const edge = segment.startOnEdge(edgeProgram, [
    'serve',
    '--listen',
    segment.edgeIp,
    '--json',
    ...serveArguments(files),
    '--dhcp',
    'server',
    '--dhcp-pool',
    '10.78.0.100-10.78.0.150',
  ])
  running.push(edge)
  const ready = `until (exec 3<>/dev/tcp/${segment.edgeIp}/6980) 2>/dev/null; do sleep 0.05; done`
  const probe = segment.startOnEdge('bash', ['-c', ready])
  running.push(probe)
  await probe.ended
  const { exit, output } = await bootDevices(
    [
      '--server',
      segment.edgeIp,
      '--interface',
      segment.deviceInterface,
      '--breather-ms',
      '1',
      '--devices',
      String(devices),
      '--trace',
      trace,
      '--verify',
      files.vdisk,
    ],
    (program, all) => segment.startOnSwitch(program, all),
  )
  expect(exit, output).toBe(0)
  // An edge prints a boot again when its device has said what it saw of the network.
  return printedBoots(edge, devices, ({ outcome, network }) => outcome !== undefined && network?.toDevice !== undefined)
}

/** The share of all boots, and how far chance may take it from the true one: five standard deviations. */
function shareOf(boots: BootReport[], direction: 'toDevice' | 'fromDevice', truth: number) {
  const sum = (of: (boot: BootReport) => number | undefined) => boots.reduce((all, boot) => all + (of(boot) ?? 0), 0)
  const packets = sum(({ network }) => network?.[direction]?.packets)
  const lost = sum(({ network }) => network?.[direction]?.lost)
  return { share: lost / packets, packets, reach: 5 * Math.sqrt((truth * (1 - truth)) / packets) }
}

describe.skipIf(missing !== undefined)(`on their own segment${missing ? ` (${missing})` : ''}`, () => {
  beforeEach(() => {
    segment = new Segment('evidence')
    segment.cutSuperPackets()
  })
  afterEach(async () => {
    await Promise.all(running.splice(0).map((process) => process.stop()))
    segment.remove()
  })

  test('device and edge measure what the network loses in each direction', async () => {
    const [down, up] = [0.02, 0.05]
    segment.loseFromEdge(100 * down)
    segment.loseAtEdges(100 * up, 6910)
    const boots = await bootAll()
    const toDevice = shareOf(boots, 'toDevice', down)
    expect(toDevice.packets).toBeGreaterThan((devices * readCount * readSize) / 1440)
    expect(Math.abs(toDevice.share - down)).toBeLessThan(toDevice.reach)
    const fromDevice = shareOf(boots, 'fromDevice', up)
    expect(fromDevice.packets).toBeGreaterThan(devices * readCount)
    expect(Math.abs(fromDevice.share - up)).toBeLessThan(fromDevice.reach)
    // One by one: few packets next to each other are lost.
    for (const { network } of boots) {
      const { runs = 0, runPackets = 0 } = network?.toDevice ?? {}
      expect(runPackets / runs).toBeLessThan(1.5)
    }
  })

  test('a network that loses nothing is reported so, with its round trip and its order', async () => {
    const boots = await bootAll()
    for (const { network } of boots) {
      expect(network?.toDevice?.lost).toBe(0)
      expect(network?.fromDevice?.lost).toBe(0)
      expect(network?.order?.late).toBe(0)
      expect(network?.order?.packets).toBeGreaterThan(readCount)
      expect(network).toMatchObject({ duplex: 'full', linkMbit: 1000, mtu: 1500, sizeMax: 1472, size: 1472 })
      const { count = 0, minUs = 0, p50Us = 0, p95Us = 0 } = network?.rtt ?? {}
      expect(count).toBeGreaterThanOrEqual(3)
      expect(minUs <= p50Us && p50Us <= p95Us && p95Us < 1_000_000).toBe(true)
    }
  })
})
