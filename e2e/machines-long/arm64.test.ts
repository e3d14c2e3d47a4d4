import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { machinesMissing } from '../lib/device/machine-kernel.ts'
import { arm64Platform } from '../lib/device/machine-platform.ts'
import { finishedBoot, MachineSite } from '../lib/lab/machine-site.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'

const script = `
echo "MACHINE $(uname -m)"
echo "BLOB $(md5sum /blob)"
bootfarm-target ready busybox && echo "ACKNOWLEDGED"
`
const missing = machinesMissing(['qemu-system-arm', 'qemu-efi-aarch64']) ?? (process.env.BOOTFARM_NO_ARM64 || undefined)
let site: MachineSite
let edge: RunningProcess

describe.skipIf(missing)(`an arm64 machine${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(async () => {
    const options = { platform: arm64Platform(), dhcpServer: false }
    site = new MachineSite('arm', { script, blobSize: 4 << 20 }, options)
    edge = await site.startEdge('server')
  })

  afterAll(async () => {
    await site.remove()
  })

  test('boots with the PXE client of its firmware and GRUB', async () => {
    const machine = await site.powerOn('uefi-arm64')
    await machine.waitFor(/^MACHINE aarch64/m)
    const [, sum] = await machine.waitFor(/^BLOB (\w{32})/m)
    expect(sum, 'the root disk has the bytes of the image').toBe(site.disk.blobSum)
    await machine.waitFor(/^ACKNOWLEDGED/m)
    await machine.ended
    const report = await finishedBoot(edge)
    expect(report).toMatchObject({ simulated: false, clientArch: 11, outcome: { kind: 'ready' } })
    expect(report.phases.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['dhcp', 'nbp', 'loader', 'breather', 'stage2', 'ready']),
    )
  }, 240_000)
})
