import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { machinesMissing, wholeDiskPackages } from '../lib/device/machine-kernel.ts'
import { versionIdOf } from '../lib/edge/enrolled-edge.ts'
import { finishedBoot, MachineSite } from '../lib/lab/machine-site.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'

const script = `
echo "SERVICE $(cat /blob | wc -c)"
bootfarm-target ready busybox && echo "ACKNOWLEDGED"
`
const ownDiskScript = `
echo "STARTED FROM THE OWN DISK"
busybox poweroff -f
`
const bootLimitMs = 300_000
const menu = {
  // No need to wait for the timeout: a key is pressed.
  timeoutMs: 600_000,
  defaultEntry: 2,
  entries: [
    { kind: 'version' as const, title: 'Entry of the first version', versionId: versionIdOf(0) },
    { kind: 'version' as const, title: 'Entry of the second version', versionId: versionIdOf(1) },
    { kind: 'local_disk' as const, title: 'Entry of the own disk' },
  ],
}
/** Keys on a serial console (ECMA-48). */
const keys = { up: '\x1b[A', enter: '\r' }
const missing = machinesMissing(wholeDiskPackages)
let site: MachineSite
let edge: RunningProcess
let ownDisk: string

describe.skipIf(missing)(`a machine with a boot menu${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(async () => {
    site = new MachineSite('menu', { script, blobSize: 4096 })
    ownDisk = site.wholeDisk(ownDiskScript)
    edge = await site.startEnrolledEdge([{}, { commandLine: 'chosen=second' }], [], menu)
  })

  afterAll(async () => {
    await site.remove()
  })

  test.for([
    { firmware: 'bios', clientArch: 0 },
    { firmware: 'uefi', clientArch: 7 },
  ] as const)(
    '$firmware: boots the version that was chosen with the keyboard',
    { timeout: bootLimitMs },
    async ({ firmware, clientArch }) => {
      const machine = await site.powerOn(firmware)
      await machine.waitFor(/Entry of the own disk/)
      machine.write(keys.up)
      machine.write(keys.enter)
      await machine.waitFor(/^ACKNOWLEDGED/m)
      const report = await finishedBoot(
        edge,
        (boot) => boot.clientArch === clientArch && boot.outcome?.kind === 'ready',
      )
      expect(report).toMatchObject({ versionId: versionIdOf(1), menuEntry: 'Entry of the second version' })
      await machine.ended
    },
  )

  // UEFI continues with its boot entries: after HTTP over IPv4 comes HTTP over IPv6, which nobody answers, and then the
  // disk.
  test.for([
    { firmware: 'bios', clientArch: 0 },
    { firmware: 'uefi-http', clientArch: 16 },
  ] as const)('$firmware: starts its own disk', { timeout: bootLimitMs }, async ({ firmware, clientArch }) => {
    const machine = await site.powerOn(firmware, 0, { kind: 'disk', file: ownDisk })
    await machine.waitFor(/Entry of the own disk/)
    machine.write(keys.enter)
    await machine.waitFor(/STARTED FROM THE OWN DISK/)
    const report = await finishedBoot(
      edge,
      (boot) => boot.clientArch === clientArch && boot.outcome?.kind === 'local_disk',
    )
    expect(report.menuEntry).toBe('Entry of the own disk')
    await machine.ended
  })
})
