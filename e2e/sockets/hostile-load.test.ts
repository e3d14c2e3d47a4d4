import path from 'node:path'
import type { BootReport } from '@bootfarm/proto/uplink'
import { afterAll, describe, expect, test } from 'vitest'
import type { HostileAccount } from '../lib/device/hostile-peer.ts'
import type { RunningBoot, WorkAccount } from '../lib/device/working-devices.ts'
import { makeBootFiles, serveArguments } from '../lib/edge/loopback-edge.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'
import { namespacesMissing, Segment } from '../lib/lab/segment.ts'

const missing = namespacesMissing()
const deviceCount = 16
const requestCount = 3_900
const network = '10.79.0'
/** No edge of any site. */
const otherEdge = '00000009-0000-4000-8000-000000000000'
const scratch = scratchDirectory()
const running: RunningProcess[] = []
let segment: Segment | undefined

afterAll(async () => {
  await Promise.all(running.map((process) => process.stop()))
  segment?.remove()
  scratch.remove()
})

const program = (name: string) => path.resolve(import.meta.dirname, `../lib/device/${name}.ts`)

async function accountOf<T>(process: RunningProcess, word: string): Promise<T> {
  const [, text = ''] = await process.waitFor(new RegExp(`^${word} (.*)\n`, 'm'))
  return JSON.parse(text) as T
}

describe.skipIf(missing)(`somebody in the network${missing ? ` (${missing})` : ''}`, () => {
  test('sends every kind of request, and each running device reads and writes on', async () => {
    const files = makeBootFiles(scratch.path, 4096)
    const own = new Segment('hostile')
    segment = own
    own.routeThroughSwitch(`${network}.0/24`)
    const options = ['--dhcp', 'server', '--dhcp-pool', '10.78.0.100-10.78.0.119', '--write-cache', 'edge', '--json']
    const data = ['--data', path.join(scratch.path, 'data'), '--trust-mac-from', `${network}.0/24`]
    const serve = ['serve', '--listen', own.edgeIp, ...options, ...data, ...serveArguments(files)]
    const edge = own.startOnEdge(edgeProgram, serve)
    running.push(edge)
    while (!own.edgeListens(6980)) expect(edge.isRunning, edge.output).toBe(true)

    const url = `http://${own.edgeIp}:6980`
    const work = [program('working-devices'), url, network, String(deviceCount), files.vdisk]
    const devices = own.startMachine(process.execPath, work)
    running.push(devices)
    const boots = await accountOf<RunningBoot[]>(devices, 'boots')
    expect(boots).toHaveLength(deviceCount)

    const attack = [program('hostile-peer'), own.edgeIp, String(requestCount), JSON.stringify(boots), otherEdge]
    const stranger = own.startElsewhere(process.execPath, attack)
    running.push(stranger)
    const { sent, statuses, streamTypes } = await accountOf<HostileAccount>(stranger, 'account')
    expect(sent).toBeGreaterThanOrEqual(requestCount)
    // It gets neither scripts nor disks. A failure is taken note of, and is no failure of the device.
    for (const [kind, answers] of Object.entries(statuses))
      for (const status of Object.keys(answers))
        expect(status, `${kind}: ${JSON.stringify(answers)}`).toMatch(kind === 'failed' ? /^204$|^4/ : /^4/)
    expect(Object.keys(statuses)).toHaveLength(6)
    // A recorded HELLO gets cookies, and no session.
    expect(Object.keys(streamTypes), JSON.stringify(streamTypes)).toEqual(['2'])

    devices.end('')
    const { reads, writes, wrong } = await accountOf<WorkAccount>(devices, 'account')
    expect(wrong).toEqual([])
    expect(writes).toBeGreaterThan(deviceCount)
    expect(reads).toBeGreaterThan(2 * deviceCount)
    const macs = new Set(boots.map(({ mac }) => mac))
    const ended = edge.jsonLines<BootReport>().filter(({ mac, outcome }) => macs.has(mac) && outcome?.kind !== 'ready')
    expect(ended).toEqual([])
  })
})
