import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ensureSystemRoot } from '../../scripts/lib/machines/system-root.mjs'
import { macOf, startMachine } from '../lib/device/machine.ts'
import { machinesMissing } from '../lib/device/machine-kernel.ts'
import { LanProduct } from '../lib/lab/lan-product.ts'

const missing = machinesMissing()
let lan: LanProduct

describe.skipIf(missing)(`npm start -- --lan on a server of an office's LAN${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(async () => {
    // The server in its namespace cannot reach a mirror.
    const root = await ensureSystemRoot('full')
    if ('missing' in root) throw new Error(root.missing)
    lan = new LanProduct('lan')
    await lan.start()
  })

  afterAll(async () => {
    await lan?.remove()
  })

  test('says what to do in the firmware and in the DHCP server', () => {
    expect(lan.output).toMatch(/EVERY machine .* gets Debian/s)
    expect(lan.output).toMatch(/Firmware .*PXE IPv4.*Secure Boot off/)
    expect(lan.output).toMatch(/DHCP server .*stays as it is/)
    expect(lan.output).toMatch(/UDP 67, 4011, 69, 6910 and TCP 6980/)
  })

  test.for(['bios', 'uefi'] as const)(
    'an unregistered machine with %s boots Debian from it',

    async (firmware) => {
      const { segment, scratch } = lan
      const before = await lan.bootsOf(macOf(0))
      const machine = lan.add(startMachine({ segment, port: 0, firmware, directory: scratch.path, memoryMib: 1024 }))
      expect(await lan.finishedBoot(macOf(0), before)).toMatchObject({
        outcome: 'ready',
        simulated: false,
        siteName: 'LAN',
        deviceName: macOf(0).replaceAll(':', '-'),
      })
      await machine.stop()
    },
  )
})
