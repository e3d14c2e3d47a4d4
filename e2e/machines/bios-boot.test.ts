import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { macOf } from '../lib/machine.ts'
import { machinesMissing } from '../lib/machine-kernel.ts'
import { finishedBoot, MachineSite, phaseTable } from '../lib/machine-site.ts'
import type { RunningProcess } from '../lib/running-process.ts'

const script = `
echo "ROOT $(cut -d' ' -f1 /proc/uptime)"
touch /written && echo "WRITABLE"
echo "BLOB $(md5sum /blob)"
bootfarm-target ready busybox && echo "ACKNOWLEDGED"
`
const missing = machinesMissing()
let site: MachineSite
let edge: RunningProcess

describe.skipIf(missing)(`a BIOS machine${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(async () => {
    site = new MachineSite('bios', script, 8 << 20)
    edge = await site.startEdge()
  })

  afterAll(async () => {
    await site.remove()
  })

  test('boots beside another DHCP server and its phases are reported', async () => {
    const machine = site.powerOn('bios')
    const [, sum] = await machine.waitFor(/^BLOB (\w{32})/m)
    expect(sum, 'the root disk has the bytes of the image').toBe(site.disk.blobSum)
    await machine.waitFor(/^ACKNOWLEDGED/m)
    expect(machine.output).toMatch(/^WRITABLE/m)

    const report = await finishedBoot(edge)
    console.log(phaseTable(report))
    expect(report).toMatchObject({
      mac: macOf(0),
      simulated: false,
      clientArch: 0,
      outcome: { kind: 'ready' },
    })
    const names = report.phases.map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(['dhcp', 'loader', 'breather', 'stage2', 'ready']))
    const stage2 = report.phases.find(({ name }) => name === 'stage2')
    expect(stage2?.bytesOut, 'the blob went over the stream').toBeGreaterThan(8 << 20)
    for (const phase of report.phases.slice(0, -1)) expect(phase.durationUs, phase.name).toBeGreaterThan(0)
  })
})
