import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { macOf } from '../lib/device/machine.ts'
import { machinesMissing } from '../lib/device/machine-kernel.ts'
import { type MachinePlatform, x64Platform } from '../lib/device/machine-platform.ts'
import { bootProgramsMissing, importSets, unpackedPackages } from '../lib/images/boot-programs.ts'
import { finishedBoot, MachineSite } from '../lib/lab/machine-site.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'

const script = `
echo "BLOB $(md5sum /blob)"
bootfarm-target ready busybox && echo "ACKNOWLEDGED"
`
const missing = machinesMissing() ?? bootProgramsMissing()
const bootLimitMs = 180_000
let site: MachineSite
let edge: RunningProcess

describe.skipIf(missing)(`PXELINUX${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(async () => {
    const x64 = x64Platform()
    if (!x64) throw new Error('no kernel for virtual machines')
    const makeSets = (directory: string) => importSets(directory, ['--set', 'pxelinux', '--from', unpackedPackages()])
    const platform: MachinePlatform = { ...x64, makeSets }
    site = new MachineSite('pxelinux', { script, blobSize: 1 << 20 }, { machines: 2, platform })
    edge = await site.startEnrolledEdge([{ bootProgramSet: 'pxelinux' }, { bootProgramSet: 'nowhere' }])
  })

  afterAll(async () => {
    await site.remove()
  })

  test('boots a BIOS machine whose device is set to it', { timeout: bootLimitMs }, async () => {
    const machine = await site.powerOn('bios')
    const [, sum] = await machine.waitFor(/^BLOB (\w{32})/m)
    expect(sum).toBe(site.disk.blobSum)
    await machine.waitFor(/^ACKNOWLEDGED/m)
    await machine.ended
    const report = await finishedBoot(edge, ({ mac }) => mac === macOf(0))
    expect(report).toMatchObject({
      outcome: { kind: 'ready' },
      program: { set: 'pxelinux', file: 'pxelinux.0' },
    })
    expect(report.phases.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['dhcp', 'nbp', 'loader', 'breather', 'stage2', 'ready']),
    )
  })

  test("a device with a set that the edge lacks fails with the set's name", {
    timeout: bootLimitMs,
  }, async () => {
    await site.powerOn('bios', 1)
    const report = await finishedBoot(edge, ({ mac }) => mac === macOf(1))
    expect(report.outcome).toMatchObject({
      kind: 'failed',
      cause: 'nbp_not_found',
      text: 'this edge has no set nowhere',
    })
  })
})
