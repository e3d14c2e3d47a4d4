import { execFileSync } from 'node:child_process'
import path from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { makeBootFiles, serveArguments } from '../lib/edge/loopback-edge.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'
import { namespacesMissing, Segment } from '../lib/lab/segment.ts'

const missing = namespacesMissing(['busybox-static'])
const scratch = scratchDirectory()
const running: RunningProcess[] = []
let segment: Segment | undefined

afterAll(async () => {
  await Promise.all(running.map((process) => process.stop()))
  segment?.remove()
  scratch.remove()
})

describe.skipIf(missing)(`an address in use${missing ? ` (${missing})` : ''}`, () => {
  test('a client that does not look itself gets another address than the one that a machine in the network has', async () => {
    const own = new Segment('inuse')
    segment = own
    // A machine that nobody has told this edge of, in the middle of its pool.
    running.push(own.startElsewhere('sleep', ['600']))
    const data = path.join(scratch.path, 'data')
    const pool = ['--dhcp', 'server', '--dhcp-pool', `${own.dhcpIp}-10.78.0.9`]
    const files = serveArguments(makeBootFiles(scratch.path, 64))
    const edge = own.startOnEdge(edgeProgram, ['serve', '--listen', own.edgeIp, ...pool, '--data', data, ...files])
    running.push(edge)
    while (!own.edgeListens(6980)) expect(edge.isRunning, edge.output).toBe(true)
    // It only prints what it gets.
    const words = [
      'udhcpc',
      '-f',
      '-q',
      '-n',
      '-i',
      own.deviceInterface,
      '-s',
      '/bin/true',
      '-r',
      own.dhcpIp,
      '-A',
      '1',
    ]
    const client = own.startOnSwitch('busybox', words)
    expect(await client.ended, client.output).toBe(0)
    expect(client.output).toMatch(/select for 10\.78\.0\.2\b.*lease of 10\.78\.0\.[3-9] obtained/s)
    expect(edge.output).toMatch(/10\.78\.0\.2 is in use by [0-9a-f:]{17}: nobody gets it for ten minutes\./)
    const leases = execFileSync(edgeProgram, ['leases', '--data', data, '--json'], { encoding: 'utf8' })
    expect(leases).toMatch(/"ip":"10\.78\.0\.2","state":"declined"/)
  })
})
