import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { machinesMissing, wholeDiskPackages } from '../lib/device/machine-kernel.ts'
import { finishedBoot, MachineSite } from '../lib/lab/machine-site.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'

/** A system that knows nothing of Bootfarm except its edge's address. */
const script = (edgeIp: string) => `
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs devtmpfs /dev
modprobe -a virtio_pci virtio_net
ip link set eth0 up
udhcpc -i eth0 -n -q -t 20 -T 1 -s /etc/udhcpc.sh
busybox wget -q -O - --post-data= http://${edgeIp}:6980/ready && echo "TAKEN"
busybox wget -q -O - --post-data= http://${edgeIp}:6980/ready || echo "NO OTHER BOOT"
busybox poweroff -f
`
const missing = machinesMissing(wholeDiskPackages)
const bootLimitMs = 180_000
let site: MachineSite
let edge: RunningProcess

describe.skipIf(missing)(`a disk with its own boot loader${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(async () => {
    site = new MachineSite('disk', { script: '', blobSize: 1 << 20 })
    edge = await site.startWholeDiskEdge(script(site.segment.edgeIp))
  })

  afterAll(async () => {
    await site.remove()
  })

  test.for([
    { firmware: 'bios', clientArch: 0 },
    { firmware: 'uefi', clientArch: 7 },
  ] as const)(
    'boots a $firmware machine over HTTP, which reports ready from its address',
    {
      timeout: bootLimitMs,
    },
    async (boot) => {
      const machine = await site.powerOn(boot.firmware)
      await machine.waitFor(/^TAKEN/m)
      await machine.waitFor(/^NO OTHER BOOT/m)
      await machine.ended

      const report = await finishedBoot(edge, ({ clientArch }) => clientArch === boot.clientArch)
      expect(report.outcome).toEqual({ kind: 'ready' })
      const names = report.phases.map(({ name }) => name)
      expect(names).toEqual(expect.arrayContaining(['dhcp', 'loader', 'stage1', 'breather', 'ready']))
      expect(names, 'nothing came over the stream').not.toContain('stage2')
      const stage1 = report.phases.find(({ name }) => name === 'stage1')
      expect(stage1?.reads).toBeGreaterThan(50)
      expect(stage1?.bytesOut, 'kernel and initramfs were read by the boot loader').toBeGreaterThan(16 << 20)
      expect(report.phases.at(-1)).toMatchObject({ name: 'ready', source: 'reported' })
    },
  )
})
