import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { bootDevices, printedBoots } from '../lib/device/simulated-devices.ts'
import { makeBootFiles, serveArguments } from '../lib/edge/loopback-edge.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'
import { namespacesMissing, Segment } from '../lib/lab/segment.ts'

const missing = namespacesMissing()
const scratch = scratchDirectory()
const files = makeBootFiles(scratch.path, 2048)
const trace = path.join(scratch.path, 'trace.csv')
writeFileSync(
  trace,
  `time_ms,offset,length\n${Array.from({ length: 64 }, (_, index) => `${index}.000,${index * 4096},4096`).join('\n')}\n`,
)
const readType = 5
let segment: Segment
const running: RunningProcess[] = []
afterAll(() => scratch.remove())

async function boot(firstMac: string, ...args: string[]): Promise<void> {
  const common = ['--server', segment.edgeIp, '--interface', segment.deviceInterface, '--breather-ms', '50']
  const reads = ['--devices', '2', '--first-mac', firstMac, '--trace', trace, '--verify', files.vdisk]
  const { exit, output } = await bootDevices([...common, ...reads, ...args], (program, all) =>
    segment.startOnSwitch(program, all),
  )
  expect(exit, output).toBe(0)
}

/** The stream's payloads in a capture: its file header has 24 bytes, a record's 16, and Ethernet, IPv4 and UDP 42. */
function payloadsOf(capture: Buffer): Buffer[] {
  const payloads: Buffer[] = []
  for (let at = 24; at < capture.length; ) {
    const size = capture.readUInt32LE(at + 8)
    payloads.push(capture.subarray(at + 16 + 42, at + 16 + size))
    at += 16 + size
  }
  return payloads
}

describe.skipIf(missing !== undefined)(`on their own segment${missing ? ` (${missing})` : ''}`, () => {
  beforeEach(() => {
    segment = new Segment('versions')
  })
  afterEach(async () => {
    await Promise.all(running.splice(0).map((process) => process.stop()))
    segment.remove()
  })

  test('an edge serves devices of this release and of the one before, each in its version', async () => {
    const file = path.join(scratch.path, 'stream.pcap')
    const pool = ['--dhcp', 'server', '--dhcp-pool', '10.78.0.100-10.78.0.150']
    const serve = ['serve', '--listen', segment.edgeIp, '--json', ...serveArguments(files), ...pool]
    const edge = segment.startOnEdge(edgeProgram, serve)
    const quick = ['-U', '--immediate-mode', '-B', '16384', '-Z', 'root']
    const listener = segment.startOnEdge('tcpdump', [...quick, '-w', file, 'udp port 6910'])
    running.push(edge, listener)
    await listener.waitFor(/listening on/)
    const ready = `until (exec 3<>/dev/tcp/${segment.edgeIp}/6980) 2>/dev/null; do sleep 0.05; done`
    const probe = segment.startOnEdge('bash', ['-c', ready])
    running.push(probe)
    await probe.ended
    await boot('02:bf:00:00:00:01')
    await boot('02:bf:00:00:00:11', '--stream-version', '2')
    const boots = await printedBoots(edge, 4)
    expect(boots.map(({ outcome }) => outcome?.kind)).toEqual(['ready', 'ready', 'ready', 'ready'])
    await listener.stop()
    const reads = payloadsOf(readFileSync(file)).filter((payload) => payload[1] === readType)
    const versions = reads.map((payload) => payload.readUInt8(0) >> 4)
    expect(versions.length).toBeGreaterThanOrEqual(4 * 64)
    // The first devices are done before the others begin.
    expect(versions).toEqual(versions.toSorted((one, other) => other - one))
    expect(new Set(versions)).toEqual(new Set([3, 2]))
  })
})
