import { linkSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { testUuid, writeEnrolledEdge } from '../../../e2e/lib/edge/enrolled-edge.ts'
import { UserError } from '../../lib/fail.mjs'
import { inRoot, simProgram } from '../../lib/paths.mjs'
import { secondsOfProcess } from '../../lib/processor-time.mjs'
import { say } from '../../lib/progress.mjs'
import { WatchedProcess } from '../watched-process.mjs'
import { withServer } from './load.mjs'

export const devices = 500
const trace = 'e2e/traces/boot-trace-bios.csv'
/** Many times what such a boot takes. */
const limitMs = 180_000
const startLimitMs = 20_000
const pool = '10.79.16.0-10.79.31.255'
const ends = 10

export const fleetCases = [{ name: `${devices} devices boot` }]

/**
 * Starts all devices at once, from DHCP to ready, with the think times of a recorded boot; one edge on one processor,
 * the devices on another. Every byte is compared.
 * @param {import('./load.mjs').Site} site
 * @param {{ rounds: number }} options
 */
export async function measureFleet(site, { rounds }) {
  const measured = []
  for (let round = 0; round < rounds; round++) {
    for (const peer of site.peers.filter(({ way }) => way === 'stream'))
      measured.push({ by: peer.by, ...(await bootAll(site, peer)) })
    say(`${devices} devices boot, round ${round + 1} of ${rounds}`)
  }
  return measured
}

/**
 * Boots the devices once.
 * @param {import('./load.mjs').Site} site
 * @param {{ program: string, args: string[] }} edge
 * @param {string[]} more options of `bootfarm-sim boot`
 */
export function bootAll(site, { program, args }, more = []) {
  const files = path.join(site.scratch, 'boot-files')
  mkdirSync(files, { recursive: true })
  // The boot file that the edge names to a device with a BIOS.
  writeFileSync(path.join(files, 'undionly.kpxe'), Buffer.alloc(70_000, 7))
  site.cable.set('S', 1500)
  const start = async (cable, image, data) => {
    const serve = ['serve', '--json', '--listen', cable.serverIp, '--dhcp', 'server', '--dhcp-pool', pool]
    register(data, image)
    const disk = ['--boot-files', files, '--data', data]
    const edge = new WatchedProcess(cable.onServer('taskset', ['-c', '0', program, ...serve, ...disk, ...args]))
    await edge.waitFor(/serving on/, startLimitMs)
    return edge
  }
  return withServer(site, { start }, async (edge) => {
    const fleet = new WatchedProcess(
      site.cable.onClient('taskset', [
        '-c',
        String(os.cpus().length - 1),
        simProgram,
        'boot',
        '--json',
        '--server',
        site.cable.serverIp,
        '--interface',
        'client0',
        '--devices',
        String(devices),
        '--first-mac',
        '02:bf:00:00:00:01',
        '--trace',
        inRoot(trace),
        '--verify',
        site.image,
        ...more,
      ]),
    )
    const timer = setTimeout(() => void fleet.stop(), limitMs)
    await fleet.ended
    clearTimeout(timer)
    const boots = fleet.output
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line))
    return { ...summary(boots), edgeProcessorSeconds: secondsOfProcess(edge.pid) }
  })
}

/** An edge boots only some unregistered devices in a minute, so it has to know these, as after its enrolment. */
function register(data, image) {
  const versionId = testUuid(200)
  const disk = { sizeBytes: statSync(image).size, diskPath: 'disk.raw', kernelPath: null, initrdPath: null }
  const vdisks = [
    { id: testUuid(100), name: 'disk', versions: [{ id: versionId, number: 1, commandLine: '', ...disk }] },
  ]
  const all = Array.from({ length: devices }, (_, index) => ({
    id: testUuid(1000 + index),
    name: `device ${index}`,
    mac: `02:bf:00:00:${hexByte((index + 1) >> 8)}:${hexByte((index + 1) & 0xff)}`,
    versionId,
    enabled: true,
  }))
  writeEnrolledEdge(data, [], [], [], undefined, { vdisks, devices: all })
  linkSync(image, path.join(data, 'store', 'disk.raw'))
}

const hexByte = (value) => value.toString(16).padStart(2, '0')

function summary(boots) {
  const failed = boots.find(({ outcome }) => outcome !== 'ready')
  if (failed) throw new UserError(`a device of ${devices} did not boot: ${JSON.stringify(failed)}`)
  if (boots.length !== devices)
    throw new UserError(`${boots.length} of ${devices} devices have booted in ${limitMs / 1000} s.`)
  const seconds = boots.map(({ totalUs }) => totalUs / 1e6).toSorted((a, b) => a - b)
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length
  const sum = (pick) => boots.reduce((total, boot) => total + pick(boot), 0)
  return {
    devices,
    firstSeconds: mean(seconds.slice(0, ends)),
    lastSeconds: mean(seconds.slice(-ends)),
    bytes: sum(({ readBytes }) => readBytes),
    repeats: sum(({ repeats }) => repeats),
  }
}
