import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { macOf, startMachine } from '../lib/device/machine.ts'
import { buildInitramfs, findMachineKernel, machinesMissing } from '../lib/device/machine-kernel.ts'
import { type MachineDisk, makeMachineDisk } from '../lib/images/machine-disk.ts'
import { LanProduct } from '../lib/lab/lan-product.ts'

const script = `
echo "BLOB $(md5sum /blob)"
bootfarm-target ready busybox && echo "ACKNOWLEDGED"
`
const missing = machinesMissing()
let lan: LanProduct
let disk: MachineDisk

describe.skipIf(missing)(`npm start -- --lan with your own disk${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(async () => {
    const kernel = findMachineKernel()
    if (!kernel) throw new Error('no kernel for virtual machines')
    lan = new LanProduct('own')
    disk = makeMachineDisk(lan.scratch.path, script, 4 << 20)
    const initrd = path.join(lan.scratch.path, 'initrd.img')
    buildInitramfs({ kernel }, initrd)
    await lan.start([
      '--disk',
      disk.image,
      '--kernel',
      kernel.vmlinuz,
      '--initrd',
      initrd,
      '--cmdline',
      'console=ttyS0 quiet panic=-1 no_timer_check',
    ])
  })

  afterAll(async () => {
    await lan?.remove()
  })

  test('a machine gets its bytes, and its boot is in the dashboard', async () => {
    const { segment, scratch } = lan
    expect(lan.output).toMatch(/EVERY machine .* gets disk\.raw/s)
    const machine = lan.add(startMachine({ segment, port: 0, firmware: 'bios', directory: scratch.path }))
    const [, sum] = await machine.waitFor(/^BLOB (\w{32})/m)
    expect(sum).toBe(disk.blobSum)
    await machine.waitFor(/^ACKNOWLEDGED/m)
    expect(await lan.finishedBoot(macOf(0))).toMatchObject({ outcome: 'ready', siteName: 'LAN' })
  })
})
