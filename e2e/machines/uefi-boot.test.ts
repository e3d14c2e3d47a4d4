import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectPhasesAsSeen } from '../lib/assert/phases-as-seen.ts'
import { machinesMissing } from '../lib/device/machine-kernel.ts'
import { finishedBoot, MachineSite } from '../lib/lab/machine-site.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'

const script = `
echo "BLOB $(md5sum /blob)"
bootfarm-target ready busybox && echo "ACKNOWLEDGED"
`
const missing = machinesMissing()
let site: MachineSite
let edge: RunningProcess

describe.skipIf(missing)(`a UEFI machine${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(async () => {
    site = new MachineSite('uefi', { script, blobSize: 4 << 20 }, { machines: 2 })
    edge = await site.startEdge()
  })

  afterAll(async () => {
    await site.remove()
  })

  test.for([
    { firmware: 'uefi', client: 'PXE', clientArch: 7, port: 0 },
    { firmware: 'uefi-http', client: 'HTTP boot', clientArch: 16, port: 1 },
  ] as const)('boots with the $client client of its firmware and its phases are reported', async (boot) => {
    const machine = await site.powerOn(boot.firmware, boot.port)
    const [, sum] = await machine.waitFor(/^BLOB (\w{32})/m)
    expect(sum, 'the root disk has the bytes of the image').toBe(site.disk.blobSum)
    await machine.waitFor(/^ACKNOWLEDGED/m)
    await machine.ended

    const report = await finishedBoot(edge, ({ clientArch }) => clientArch === boot.clientArch)
    expect(report).toMatchObject({ simulated: false, outcome: { kind: 'ready' } })
    expect(report.phases.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['dhcp', 'nbp', 'loader', 'breather', 'stage2', 'ready']),
    )
    expectPhasesAsSeen(report, await site.packets(), site.segment.edgeIp)
  })
})
