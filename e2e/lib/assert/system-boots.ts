import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { type BootReport, filesRead } from '@bootfarm/proto/uplink'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ensureSystemRoot } from '../../../scripts/lib/machines/system-root.mjs'
import { type Firmware, macOf } from '../device/machine.ts'
import { machinesMissing } from '../device/machine-kernel.ts'
import { storedVersion, testUuid, writeEnrolledEdge } from '../edge/enrolled-edge.ts'
import { finishedBoot, MachineSite } from '../lab/machine-site.ts'
import { edgeProgram } from '../lab/programs.ts'
import type { RunningProcess } from '../lab/running-process.ts'

const phases = {
  bios: ['dhcp', 'loader', 'breather', 'stage2', 'ready'],
  uefi: ['dhcp', 'nbp', 'loader', 'breather', 'stage2', 'ready'],
}
const clientArchs = { bios: 0, uefi: 7 }

/**
 * Tests that this many machines, switched on at the same moment, boot a prepared Debian from one edge.
 * @param timeoutMs emulated machines share the processors of one
 */
export async function testSystemBoots(firmware: Extract<Firmware, 'bios' | 'uefi'>, count: number, timeoutMs: number) {
  const root = machinesMissing() ? undefined : await ensureSystemRoot()
  const missing = machinesMissing() ?? (root && 'missing' in root ? root.missing : undefined)
  const title = `${count} ${firmware.toUpperCase()} machines at once`
  let site: MachineSite
  let edge: RunningProcess

  /** An enrolled edge, which lists what its machines read, with their disk in its store. */
  function startEdge(): Promise<RunningProcess> {
    const store = path.join(site.edgeData, 'store')
    const vdisk = (...args: string[]) =>
      execFileSync(edgeProgram, ['vdisk', ...args, '--store', store], { encoding: 'utf8' })
    mkdirSync(site.edgeData, { recursive: true })
    vdisk('init')
    const boots = ['--kernel', site.kernel, '--initrd', site.initrd, '--cmdline', site.commandLine]
    const said = vdisk('import', site.disk.image, '--name', 'Debian', ...boots, '--json')
    const made: string = JSON.parse(said.trim().split('\n').at(-1) ?? '{}').version
    const { vdisks, versionId } = storedVersion(vdisk('show', '--json', '--version', made))
    const devices = Array.from({ length: count }, (_, port) => ({
      id: testUuid(300 + port),
      name: `device ${port}`,
      mac: macOf(port),
      versionId,
      enabled: true,
    }))
    writeEnrolledEdge(site.edgeData, [], [], [], undefined, { vdisks, devices })
    return site.startOwnEdge()
  }

  describe.skipIf(missing)(`${title}${missing ? ` (${missing})` : ''}`, () => {
    beforeAll(async () => {
      if (!root || 'missing' in root) throw new Error('there is no Debian')
      site = new MachineSite(firmware, { system: root }, { machines: count })
      edge = await startEdge()
    })

    afterAll(() => site?.remove())

    test('boot a prepared Debian with the initramfs it made itself, and nothing in it fails', {
      timeout: timeoutMs,
    }, async () => {
      for (const machine of await site.powerOnAll(firmware, count)) await expectHealthy(machine)
      for (let port = 0; port < count; port++) {
        // The times of its units are reported when systemd is done, after ready.
        const report = await finishedBoot(
          edge,
          ({ mac, guest }) => mac === macOf(port) && guest?.steps.some(({ group }) => group === 'unit') === true,
          `boot of ${macOf(port)} with what its units took`,
        )
        expectPhases(report, phases[firmware])
        expectSystemSteps(report)
        expect(report).toMatchObject({ simulated: false, clientArch: clientArchs[firmware] })
        await expectNamed(path.join(site.edgeData, 'files-read', `${report.id}.json`))
      }
    })
  })
}

/** Checks what the witness of `makeSystemDisk` prints; the console may show a prompt before it. */
async function expectHealthy(machine: RunningProcess): Promise<void> {
  await machine.waitFor(/WITNESSED/)
  const { output } = machine
  expect(output, 'every unit has started').toMatch(/STATE running\b/)
  expect(output).toMatch(/FAILED *\r?\n/)
  expect(output, 'no network manager gave the boot NIC another address').toMatch(/ADDRESSES 1\b/)
  expect(output, 'timers that would fill the write cache rest').toMatch(/TIMERS inactive inactive/)
  expect(output).toMatch(/WRITTEN yes/)
  expect(output, 'nothing puts it to sleep').toMatch(/SLEEP refused/)
  expect(await machine.ended, 'it was switched off in order, with its disk there to the end').toBe(0)
  expect(machine.output).not.toMatch(/I\/O error|Failed unmounting|Timed out/)
}

/** At least 95 % of what a machine read are of a file, a program and a unit; and its units waited for one another. */
async function expectNamed(file: string): Promise<void> {
  await expect.poll(() => existsSync(file), { timeout: 100_000 }).toBe(true)
  const read = filesRead.parse(JSON.parse(readFileSync(file, 'utf8')))
  const { bytes, namedBytes, trace, programs, units, slowestUnits, unitChain } = read
  expect(trace).toMatchObject({ state: 'complete', lost: 0 })
  for (const named of [namedBytes, trace?.namedBytes, trace?.unitBytes]) expect(named).toBeGreaterThan(0.95 * bytes)
  expect(programs?.map(({ name }) => name)).toContain('systemd')
  expect(units?.map(({ name }) => name)).toContain('init.scope')
  expect(slowestUnits?.length).toBeGreaterThan(8)
  expect(unitChain?.[0]?.name).toMatch(/^(graphical|multi-user)\.target$/)
  expect(unitChain?.length).toBeGreaterThan(2)
}

/** systemd's steps follow those of the initramfs, and its slowest units lie within them. */
function expectSystemSteps({ guest }: BootReport): void {
  const steps = guest?.steps ?? []
  const step = (wanted: string) => {
    const { startUs, durationUs } = steps.find(({ name }) => name === wanted) ?? {
      startUs: Number.NaN,
      durationUs: Number.NaN,
    }
    return { startUs, endUs: startUs + durationUs }
  }
  const userspace = step('userspace')
  expect(step('load init').startUs).toBe(step('hand-over').endUs)
  expect(step('load init').endUs).toBe(userspace.startUs)
  expect(step('generators').endUs).toBeLessThanOrEqual(step('load units').startUs)
  const units = steps.filter(({ group }) => group === 'unit')
  expect(units).toHaveLength(8)
  for (const { name, startUs, durationUs } of units) {
    expect(startUs, name).toBeGreaterThan(userspace.startUs)
    expect(startUs, name).toBeLessThan(userspace.endUs)
    expect(durationUs, name).toBeGreaterThan(0)
  }
}

function expectPhases(report: BootReport, names: string[]): void {
  expect(report.outcome).toEqual({ kind: 'ready' })
  expect(report.phases.map(({ name }) => name)).toEqual(names)
  let endUs = 0
  for (const { name, startUs, durationUs } of report.phases) {
    expect(startUs, `${name} begins after what came before`).toBeGreaterThanOrEqual(endUs)
    if (name !== 'ready') expect(durationUs, name).toBeDefined()
    endUs = startUs + (durationUs ?? 0)
  }
  const read = report.phases.find(({ name }) => name === 'stage2')?.bytesOut
  expect(read, 'the root came over the stream').toBeGreaterThan(16 << 20)
}
