import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectOwnStepsInsidePhases } from '../lib/assert/own-steps.ts'
import { expectOwners } from '../lib/assert/owners-of-boot.ts'
import { expectPhasesAsSeen } from '../lib/assert/phases-as-seen.ts'
import { macOf } from '../lib/device/machine.ts'
import { machinesMissing } from '../lib/device/machine-kernel.ts'
import { finishedBoot, MachineSite } from '../lib/lab/machine-site.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'

const script = `
echo "ROOT $(cut -d' ' -f1 /proc/uptime)"
touch /written && echo "WRITABLE"
echo "BLOB $(md5sum /blob)"
head -c 20971520 /dev/zero >/fill
# It looks every second.
until bootfarm-target status | grep -q '"usedBytes":2[0-9]\\{7\\}'; do sleep 0.2; done
bootfarm-target ready busybox && echo "ACKNOWLEDGED"
`
const missing = machinesMissing()
let site: MachineSite
let edge: RunningProcess

describe.skipIf(missing)(`a BIOS machine${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(async () => {
    site = new MachineSite('bios', { script, blobSize: 8 << 20 })
    edge = await site.startEdge('proxy', 'bootfarm.overlay=24m')
  })

  afterAll(async () => {
    await site.remove()
  })

  test('boots beside another DHCP server and its phases are reported', async () => {
    site.link = { mbit: 100, duplex: 'half' }
    const machine = await site.powerOn('bios')
    const [, sum] = await machine.waitFor(/^BLOB (\w{32})/m)
    expect(sum, 'the root disk has the bytes of the image').toBe(site.disk.blobSum)
    await machine.waitFor(/^ACKNOWLEDGED/m)
    expect(machine.output).toMatch(/^WRITABLE/m)

    const report = await finishedBoot(edge)
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
    const [initramfs, system, ...more] = report.readTimes?.phases ?? []
    expect([initramfs?.name, system?.name, more.length]).toEqual(['initramfs', 'system', 0])
    expect(initramfs?.fetch, 'the initramfs mounted its root').toBeDefined()
    expect(initramfs?.bytes).toBeLessThan(8 << 20)
    expect(system?.bytes, 'the system read the blob').toBeGreaterThan(8 << 20)
    expect(system?.fetch).toBeDefined()
    expect((initramfs?.bytes ?? 0) + (system?.bytes ?? 0)).toBe(report.readTimes?.bytes)
    expect(system?.wire?.maxUs, 'the network has its own time').toBeLessThanOrEqual(system?.fetch?.maxUs ?? 0)
    expect(report.machine).toMatchObject({ driver: 'virtio_net', card: '1af4:0001' })
    expect(report.machine?.memoryMib).toBeGreaterThan(64)
    const { network } = report
    expect(network).toMatchObject({ duplex: 'half', linkMbit: 100, mtu: 1500, sizeMax: 1472, size: 1472 })
    expect(network?.carrierChanges ?? 0).toBeLessThanOrEqual(4)
    expect(network?.toDevice?.packets).toBeGreaterThan((8 << 20) / 1440)
    // An emulated card without space drops a few.
    expect(network?.toDevice?.lost).toBeLessThan(0.01 * (network?.toDevice?.packets ?? 0))
    expect(network?.fromDevice?.packets).toBeGreaterThan(20)
    expect(network?.fromDevice?.lost).toBe(0)
    expect(network?.rtt?.count).toBeGreaterThanOrEqual(3)
    for (const phase of report.phases.slice(0, -1)) expect(phase.durationUs, phase.name).toBeDefined()

    expect(machine.output).toMatch(/write cache in RAM is 8\d % full \((19|2\d) of 24 MiB\); at 100 % writes fail/)
    expect(report.guest?.writeCache?.sizeBytes).toBe(24 << 20)
    expect(report.guest?.writeCache?.usedBytes).toBeGreaterThan(0.8 * (24 << 20))
    expectOwnStepsInsidePhases(report)
    expectOwners(report)

    expectPhasesAsSeen(report, await site.packets(), site.segment.edgeIp)
  })
})
