import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { bootDevices, printedBoots } from '../lib/device/simulated-devices.ts'
import { makeBootFiles, patterned, serveArguments } from '../lib/edge/loopback-edge.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'
import { namespacesMissing, Segment } from '../lib/lab/segment.ts'

const missing = namespacesMissing()
const sectorCount = 2048
const scratch = scratchDirectory()
const files = makeBootFiles(scratch.path, sectorCount)
const trace = path.join(scratch.path, 'trace.csv')
/** The reads of the devices, 4 KiB at a time: the first half of the disk. */
const reads = Array.from({ length: sectorCount / 16 }, (_, index) => ({ atMs: index, offset: index * 4096 }))
writeFileSync(
  trace,
  `time_ms,offset,length\n${reads.map(({ atMs, offset }) => `${atMs}.000,${offset},4096`).join('\n')}\n`,
)
const disk = patterned(sectorCount * 512)

let segment: Segment
const running: RunningProcess[] = []
afterAll(() => scratch.remove())

/** Returns the bytes of all stream packets while two devices boot, and what the edge printed of their boots. */
async function listenWhileBooting(...args: string[]) {
  const file = path.join(scratch.path, 'stream.pcap')
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
    ...args,
  ])
  const listener = segment.startOnEdge('tcpdump', [
    '-U',
    '--immediate-mode',
    '-B',
    '16384',
    '-Z',
    'root',
    '-w',
    file,
    'udp port 6910',
  ])
  running.push(edge, listener)
  await listener.waitFor(/listening on/)
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
      '50',
      '--devices',
      '2',
      '--trace',
      trace,
      '--verify',
      files.vdisk,
    ],
    (program, all) => segment.startOnSwitch(program, all),
  )
  expect(exit, output).toBe(0)
  const boots = await printedBoots(edge, 2)
  await listener.stop()
  return { boots, heard: readFileSync(file) }
}

/** Counts the read blocks that a listener has seen, by 32 bytes in the middle of each. */
const blocksSeen = (heard: Buffer) =>
  reads.filter(({ offset }) => heard.includes(disk.subarray(offset + 600, offset + 632))).length

describe.skipIf(missing !== undefined)(`on their own segment${missing ? ` (${missing})` : ''}`, () => {
  beforeEach(() => {
    segment = new Segment('encryption')
  })
  afterEach(async () => {
    await Promise.all(running.splice(0).map((process) => process.stop()))
    segment.remove()
  })

  test('a listener on the network sees nothing of the disk, and the boot says how it was protected', async () => {
    const { boots, heard } = await listenWhileBooting()
    expect(boots.map(({ cipher }) => cipher)).toEqual(['aegis_128l', 'aegis_128l'])
    // A listener may miss some of what two devices read.
    expect(heard.length).toBeGreaterThan(reads.length * 4096)
    expect(blocksSeen(heard)).toBe(0)
  })

  test('with --clear an edge sends its disk in clear text, and the boot says that too', async () => {
    const { boots, heard } = await listenWhileBooting('--clear')
    expect(boots.map(({ cipher }) => cipher)).toEqual(['clear', 'clear'])
    expect(blocksSeen(heard)).toBeGreaterThan(reads.length / 2)
  })
})
