import path from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFailed, test } from 'vitest'
import { startMachine } from '../lib/device/machine.ts'
import { buildInitramfs, machinesMissing } from '../lib/device/machine-kernel.ts'
import { publish, x64Platform } from '../lib/device/machine-platform.ts'
import { makeMachineDisk } from '../lib/images/machine-disk.ts'
import { DhcpNetworks } from '../lib/lab/dhcp-networks.ts'
import { finishedBoot } from '../lib/lab/machine-site.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'

type Port = ReturnType<DhcpNetworks['addMachinePort']>

const missing = machinesMissing(['isc-dhcp-relay'])
const bootLimitMs = 180_000
const scratch = scratchDirectory()
const running: RunningProcess[] = []
const seen = new Set<string>()
let networks: DhcpNetworks
let near: Port
let far: Port
let serving: string[]

async function startEdge(more: string[]): Promise<RunningProcess> {
  const edge = networks.start('edge', edgeProgram, [...serving, ...more])
  running.push(edge)
  await edge.waitFor(/serving on /)
  return edge
}

type BootReport = Awaited<ReturnType<typeof finishedBoot>>
interface MachineBoot extends Pick<BootReport, 'ip' | 'routerWait'> {
  lengthMs: number
}

/** Runs a BIOS machine until it reports ready; returns how long that took, in ms, and what its report says. */
async function boot(edge: RunningProcess, segment: Port): Promise<MachineBoot> {
  const begin = performance.now()
  const machine = startMachine({ segment, port: 0, firmware: 'bios', directory: scratch.path })
  running.push(machine)
  onTestFailed(() => {
    for (const { output } of running) process.stderr.write(`${output.slice(-3000)}\n`)
  })
  await machine.waitFor(/^ACKNOWLEDGED/m)
  const lengthMs = performance.now() - begin
  await machine.ended
  const report = await finishedBoot(edge, ({ id }) => !seen.has(id))
  seen.add(report.id)
  expect(report.outcome).toEqual({ kind: 'ready' })
  return { lengthMs, ip: report.ip, routerWait: report.routerWait }
}

describe.skipIf(missing)(`an edge that is the DHCP server${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(async () => {
    networks = new DhcpNetworks(scratch.path)
    near = networks.addMachinePort('client')
    far = networks.addMachinePort('far')
    networks.forward()
    const platform = x64Platform()
    if (!platform) throw new Error('no kernel for virtual machines')
    const disk = makeMachineDisk(scratch.path, 'bootfarm-target ready busybox && echo "ACKNOWLEDGED"', 1 << 20)
    const initrd = path.join(scratch.path, 'initrd.img')
    buildInitramfs(platform, initrd)
    const programs = path.join(scratch.path, 'boot-files')
    publish(platform.bootPrograms, programs)
    serving = [
      'serve',
      '--json',
      '--listen',
      '10.91.1.1',
      '--listen',
      '10.91.2.1',
      '--dhcp',
      'server',
      '--subnet',
      '10.91.1.0/24,pool=10.91.1.100-10.91.1.109',
      '--subnet',
      '10.91.2.0/24,dhcp=off',
      '--subnet',
      '10.91.3.0/24,pool=10.91.3.50-10.91.3.59,router=10.91.3.1',
      '--boot-files',
      programs,
      '--vdisk',
      disk.image,
      '--kernel',
      platform.kernel.vmlinuz,
      '--initrd',
      initrd,
      '--cmdline',
      'console=ttyS0 quiet panic=-1 no_timer_check',
    ]
  })

  afterAll(async () => {
    for (const process of running.reverse()) await process.stop()
    networks?.remove()
    scratch.remove()
  })

  test('boots a machine behind a relay agent', { timeout: bootLimitMs }, async () => {
    const edge = await startEdge([])
    const relay = networks.start('relay', 'dhcrelay', [
      '-4',
      '-d',
      '-a',
      '-pf',
      path.join(scratch.path, 'relay.pid'),
      '-id',
      'net3',
      '-iu',
      'net2',
      '10.91.2.1',
    ])
    running.push(relay)
    await relay.waitFor(/Sending on\s+Socket/)
    const { ip } = await boot(edge, far)
    expect(ip).toMatch(/^10\.91\.3\.5\d$/)
    await relay.stop()
    await edge.stop()
  })

  test('names the wait of old iPXE for an IPv6 router, and ends it by itself where there is none', {
    timeout: 2 * bootLimitMs,
  }, async () => {
    const silent = await startEdge(['--no-router-advertisement'])
    const without = await boot(silent, near)
    await silent.stop()
    expect(without.routerWait?.durationUs).toBeGreaterThan(8_000_000)
    expect(without.routerWait?.solicitations).toBeGreaterThan(0)
    const telling = await startEdge([])
    await telling.waitFor(/No IPv6 router on segment/)
    const withAnswer = await boot(telling, near)
    await telling.stop()
    expect(withAnswer.routerWait).toBeUndefined()
    const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`
    process.stdout.write(
      `from power-on to ready: ${seconds(without.lengthMs)} without an answer, ${seconds(withAnswer.lengthMs)} with it\n`,
    )
    expect(withAnswer.lengthMs).toBeLessThan(without.lengthMs)
  })
})
