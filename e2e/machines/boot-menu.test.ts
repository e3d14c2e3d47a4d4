import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { machinesMissing } from '../lib/device/machine-kernel.ts'
import { versionIdOf } from '../lib/edge/enrolled-edge.ts'
import { ownDisk, ownDiskSays } from '../lib/images/own-disk.ts'
import { finishedBoot, MachineSite } from '../lib/lab/machine-site.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'

const menu = {
  timeoutMs: 1_000,
  defaultEntry: 1,
  entries: [
    { kind: 'version' as const, title: 'Debian; || shell', versionId: versionIdOf(0) },
    { kind: 'local_disk' as const, title: 'Disk #1 of this machine' },
  ],
}
const missing = machinesMissing()
let site: MachineSite
let edge: RunningProcess

describe.skipIf(missing)(`a BIOS machine with a boot menu${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(async () => {
    site = new MachineSite('menu', { script: '', blobSize: 4096 })
    edge = await site.startEnrolledEdge([{}], [], menu)
  })

  afterAll(async () => {
    await site.remove()
  })

  test('takes the default at the timeout: its own disk', async () => {
    const file = site.file('own-disk.raw', ownDisk())
    const machine = await site.powerOn('bios', 0, { kind: 'disk', file })
    await machine.waitFor(/Debian; '\|\|' shell/)
    await machine.waitFor(new RegExp(ownDiskSays))
    const report = await finishedBoot(edge)
    expect(report).toMatchObject({ menuEntry: 'Disk #1 of this machine', outcome: { kind: 'local_disk' } })
    expect(report.versionId).toBeUndefined()
    expect(report.phases.map(({ name }) => name)).toEqual(['dhcp', 'loader'])
    await machine.ended
  })
})
