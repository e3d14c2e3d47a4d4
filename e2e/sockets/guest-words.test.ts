import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { bootReport } from '@bootfarm/proto/uplink'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { bootDevices, printedBoots } from '../lib/device/simulated-devices.ts'
import { orderIdOf, writeEnrolledEdge } from '../lib/edge/enrolled-edge.ts'
import {
  type EdgePorts,
  edgeAddress,
  edgePorts,
  makeBootFiles,
  patterned,
  serveArguments,
  startLoopbackEdge,
} from '../lib/edge/loopback-edge.ts'
import { x86Kernel } from '../lib/images/loader-files.ts'
import { scratchDirectory, simProgram } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

const scratch = scratchDirectory()
/** A failed test leaves none behind. */
const running: RunningProcess[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map((process) => process.stop()))
})
afterAll(() => scratch.remove())

async function startEdge(ports: EdgePorts, args: string[]): Promise<RunningProcess> {
  const edge = await startLoopbackEdge(ports, args)
  running.push(edge)
  return edge
}

const sectors = 64
const files = makeBootFiles(scratch.path, sectors)
const trace = path.join(scratch.path, 'trace.csv')
writeFileSync(trace, 'time_ms,offset,length\n0,0,4096\n')

const macOf = (device: number) => `02:bf:00:00:00:0${device}`
const deviceArguments = (ports: EdgePorts) => [
  '--server',
  edgeAddress,
  '--dhcp-port',
  String(ports.dhcp),
  '--tftp-port',
  String(ports.tftp),
  '--trace',
  trace,
  '--breather-ms',
  '90',
]

/** Edge and device read their clocks one after the other, and a busy machine may run others in between. */
const clockToleranceUs = 45_000

describe('a device’s report about itself', () => {
  test('is in the boot that the edge prints, with its steps and its write cache', async () => {
    const ports = await edgePorts()
    const edge = await startEdge(ports, [...serveArguments(files), '--json'])
    const { exit, output } = await bootDevices(deviceArguments(ports))
    expect(exit, output).toBe(0)
    const boots = await printedBoots(edge, 1, ({ guest }) => guest !== undefined)
    expect(await edge.stop()).toBe(0)
    const boot = bootReport.parse(boots[0])
    const steps = boot.guest?.steps ?? []
    expect(steps.map(({ group, name }) => [group, name])).toEqual([
      ['kernel', 'kernel'],
      ['initramfs', 'network'],
      ['initramfs', 'mount'],
      ['system', 'system'],
    ])
    // The device's kernel began when its breather did, and its last step ended when it was ready.
    const beginOf = (name: string) => boot.phases.find((phase) => phase.name === name)?.startUs ?? 0
    const kernelStartUs = boot.guest?.kernelStartUs ?? 0
    const last = steps.at(-1)
    const endUs = kernelStartUs + (last?.startUs ?? 0) + (last?.durationUs ?? 0)
    expect(kernelStartUs).toBeGreaterThan(beginOf('breather') - clockToleranceUs)
    expect(kernelStartUs).toBeLessThan(beginOf('stage2'))
    expect(endUs).toBeGreaterThan(beginOf('ready') - clockToleranceUs)
    expect(boot.guest?.writeCache).toMatchObject({ usedBytes: 24 * 2 ** 20, sizeBytes: 512 * 2 ** 20 })
  })

  test('is below the table of phases', async () => {
    const ports = await edgePorts()
    const edge = await startEdge(ports, serveArguments(files))
    const { exit, output } = await bootDevices(deviceArguments(ports))
    expect(exit, output).toBe(0)
    await edge.waitFor(/write cache in the device: 24 of 512 MiB used\n.*device's step[\s\S]*system {5}system/)
    expect(await edge.stop()).toBe(0)
  })
})

describe('a machine without a stream', () => {
  test('becomes ready or fails by a POST to its own URL or from its address, and wrong requests get a reason', async () => {
    const ports = await edgePorts()
    const edge = await startEdge(ports, [...serveArguments(files), '--json'])
    const url = `http://${edgeAddress}:${ports.http}`
    const begin = async (device: number) => {
      const script = await (await fetch(`${url}/m/${macOf(device)}/boot.ipxe`)).text()
      return script.match(/ bootfarm\.report=(\S+)/)?.[1] ?? `no report URL in ${script}`
    }
    const post = async (to: string, body: string) => {
      const answer = await fetch(to, { method: 'POST', body })
      return { status: answer.status, line: (await answer.text()).trim() }
    }
    const done = { status: 204, line: '' }

    const failing = await begin(1)
    expect(failing).toMatch(new RegExp(`^${url}/b/[0-9a-f]{16}$`))
    expect(await post(`${failing}/failed`, 'no_root nothing on /dev/nbd0p1\n')).toEqual(done)
    expect(await post(`${failing}/failed`, 'no_root nothing on /dev/nbd0p1\n')).toEqual(done)
    expect(await post(`${failing}/ready`, '')).toEqual({ status: 409, line: 'This boot is over: it failed.' })
    expect(await post(`${url}/ready`, '')).toEqual({
      status: 409,
      line: 'No boot of this address is in progress.',
    })

    const first = await begin(2)
    await begin(3)
    expect(await post(`${url}/ready`, '')).toEqual({
      status: 409,
      line: 'Several boots of this address are in progress; name one by its handle.',
    })
    expect(await post(`${first}/failed`, 'a-code-too-long x')).toEqual({
      status: 400,
      line: 'The body is a code of 1 to 12 characters, a space, and a sentence.',
    })
    expect(await post(`${first}/failed`, 'x'.repeat(257))).toEqual({
      status: 413,
      line: 'A body may have at most 256 bytes, and only that of POST.',
    })
    expect(await post(`${url}/b/0123456789abcdef/ready`, '')).toEqual({
      status: 404,
      line: 'This edge has no boot with that handle.',
    })
    expect((await fetch(`${first}/ready`)).status).toBe(405)
    expect((await post(`${first}/kernel`, '')).status).toBe(405)
    expect(await post(`${first}/ready`, 'ssh.service')).toEqual(done)
    expect(await post(`${url}/ready`, '')).toEqual(done)

    const boots = (await printedBoots(edge, 3)).map((boot) => bootReport.parse(boot))
    expect(await edge.stop()).toBe(0)
    const outcomeOf = (device: number) => boots.find(({ mac }) => mac === macOf(device))?.outcome
    expect(outcomeOf(1)).toEqual({
      kind: 'failed',
      phase: 'loader',
      cause: 'root_not_found',
      text: 'nothing on /dev/nbd0p1',
    })
    expect(outcomeOf(2)).toEqual({ kind: 'ready' })
    expect(outcomeOf(3)).toEqual({ kind: 'ready' })
  })
})

test('a power order reaches the running device once, also when the edge was killed before, and never its next boot', async () => {
  const ports = await edgePorts()
  const data = path.join(scratch.path, 'edge')
  const folder = path.join(data, 'store')
  mkdirSync(folder, { recursive: true })
  writeFileSync(path.join(folder, 'disk'), patterned(sectors * 512))
  writeFileSync(path.join(folder, 'kernel'), x86Kernel('6.1.0-53-amd64', patterned(20_000)))
  const version = {
    sizeBytes: sectors * 512,
    diskPath: 'disk',
    kernelPath: 'kernel',
    initrdPath: null,
    commandLine: '',
  }
  const serve = ['--data', data, '--boot-files', files.bootFiles, '--json']

  writeEnrolledEdge(data, [macOf(1)], [version])
  const killed = await startEdge(ports, serve)
  const device = new RunningProcess(simProgram, [
    'boot',
    '--json',
    ...deviceArguments(ports),
    // One wave during this test: the device stays on.
    '--waves',
    '--wave-size',
    '1',
    '--wave-interval-s',
    '3600',
  ])
  running.push(device)
  const [before] = await printedBoots(killed, 1, ({ guest }) => guest !== undefined)
  // A worker writes it, beside the report: an edge killed in between continues a boot that is not ready yet.
  const journal = () => readFileSync(path.join(data, 'boots.journal'), 'latin1')
  await expect.poll(journal).toMatch(/"outcome":\{"ready"/)
  killed.kill('SIGKILL')
  await killed.ended

  writeEnrolledEdge(data, [macOf(1)], [version], [{ port: 0, order: 'restart' }])
  const edge = await startEdge(ports, serve)
  const [after] = await printedBoots(edge, 1, ({ guest }) => guest !== undefined)
  expect(after?.outcome).toEqual({ kind: 'ready' })
  expect(after?.id).not.toBe(before?.id)
  // The device has reported in its second boot, and got no order.
  expect(after?.guest?.powerOrderId).toBeUndefined()
  await device.waitFor(/(\{"mac":[^\n]*\n){2}/)
  expect(device.jsonLines()).toHaveLength(2)
  expect(journal()).toContain(`"order_id":"${orderIdOf(0)}"`)
  expect(await edge.stop()).toBe(0)
})
