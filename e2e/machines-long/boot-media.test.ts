import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { macOf } from '../lib/device/machine.ts'
import { machinesMissing, mediaPackages } from '../lib/device/machine-kernel.ts'
import { buildBootMedium } from '../lib/images/boot-medium.ts'
import { finishedBoot, MachineSite } from '../lib/lab/machine-site.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'

const script = `
echo "ADDRESS $(cat /run/bootfarm/network)"
bootfarm-target ready busybox && echo "ACKNOWLEDGED"
`
const missing = machinesMissing(mediaPackages)
const scratch = scratchDirectory()
const bootLimitMs = 180_000
let site: MachineSite

const medium = (name: string, edges: string[], args: string[] = []) =>
  buildBootMedium(path.join(scratch.path, `${name}.img`), edges, args)

afterAll(() => scratch.remove())

describe.skipIf(missing)(`boot media of all kinds${missing ? ` (${missing})` : ''}`, () => {
  let edge: RunningProcess

  beforeAll(async () => {
    site = new MachineSite('media', { script, blobSize: 1 << 20 })
    edge = await site.startEdge('off')
  })

  afterAll(async () => {
    await site.remove()
  })

  test.for([
    { firmware: 'bios', clientArch: 0 },
    { firmware: 'uefi', clientArch: 7 },
  ] as const)('a $firmware machine boots from a USB stick', { timeout: bootLimitMs }, async (boot) => {
    const stick = medium(boot.firmware, [site.segment.edgeIp])
    const machine = await site.powerOn(boot.firmware, 0, { kind: 'usb', file: stick })
    await machine.waitFor(/^ACKNOWLEDGED/m)
    await machine.ended
    const report = await finishedBoot(edge, ({ clientArch }) => clientArch === boot.clientArch)
    expect(report).toMatchObject({ userClass: 'bootfarm-media', outcome: { kind: 'ready' } })
  })

  test('skips edges that do not answer, each with a line', { timeout: bootLimitMs }, async () => {
    const { edgeIp } = site.segment
    const [nobody, closed] = ['10.78.0.9:6980', `${edgeIp}:6999`]
    const stick = medium('third-edge', [nobody, closed, edgeIp])
    const machine = await site.powerOn('bios', 0, { kind: 'usb', file: stick })
    await machine.waitFor(/^ACKNOWLEDGED/m)
    const screen = unwrapped(machine.output)
    expect(screen).toMatch(/asking edge 1 of 3, 10\.78\.0\.9:6980, from address 10\.78\.0\.\d+/)
    expect(screen).toContain(`edge ${nobody} gave no boot script, for the reason above`)
    expect(screen).toMatch(/6999\/m\/52-54-00-78-00-00\/boot\.ipxe\.\.\. Connection reset/)
    expect(screen).toContain(`edge ${closed} gave no boot script, for the reason above`)
    expect(screen).toContain(`asking edge 3 of 3, ${edgeIp}:6980`)
  })

  test('a medium with an address needs no DHCP server', { timeout: bootLimitMs }, async () => {
    const address = '10.78.0.200'
    const stick = medium('fixed', [site.segment.edgeIp], ['--address', `${address}/24,10.78.0.2`])
    const machine = await site.powerOn('uefi', 0, { kind: 'cd', file: stick })
    // Set by the initramfs; the segment's DHCP server gives no address above .99.
    await machine.waitFor(new RegExp(`^address=${address}/24\\r?$`, 'm'))
    await machine.waitFor(/^router=10\.78\.0\.2\r?$/m)
    await machine.waitFor(/^ACKNOWLEDGED/m)
    const report = await finishedBoot(edge, ({ ip }) => ip === address)
    expect(report.outcome).toEqual({ kind: 'ready' })
  })
})

describe.skipIf(missing)(`boot media of unregistered devices${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(async () => {
    site = new MachineSite('media', { script, blobSize: 1 << 20 }, { machines: 2 })
    await site.startEnrolledEdge([{}])
  })

  afterAll(async () => {
    await site.remove()
  })

  test('say what is wrong and ask again', { timeout: bootLimitMs }, async () => {
    const stick = medium('unknown', [site.segment.edgeIp])
    const machine = await site.powerOn('bios', 1, { kind: 'cd', file: stick })
    await machine.waitFor(/Bootfarm boot medium, round 2/)
    const screen = unwrapped(machine.output)
    expect(screen).toContain(`an address of net0, ${macOf(1)}`)
    expect(screen).toMatch(/boot\.ipxe\.\.\. No such file or directory/)
    expect(screen).toContain('no such file: it does not know this machine')
    expect(screen).toContain('nothing booted; trying everything again in 10 s')
  })
})

/** A BIOS screen is 80 characters wide and breaks lines anywhere. */
function unwrapped(output: string): string {
  return output.replaceAll(/\r?\n/g, '')
}
