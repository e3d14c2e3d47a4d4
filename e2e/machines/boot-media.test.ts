import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { machinesMissing, mediaPackages } from '../lib/device/machine-kernel.ts'
import { buildBootMedium } from '../lib/images/boot-medium.ts'
import { finishedBoot, MachineSite } from '../lib/lab/machine-site.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'

const script = `
echo "BLOB $(md5sum /blob)"
bootfarm-target ready busybox && echo "ACKNOWLEDGED"
`
const missing = machinesMissing(mediaPackages)
const scratch = scratchDirectory()
const disc = path.join(scratch.path, 'boot.iso')
let site: MachineSite
let edge: RunningProcess

describe.skipIf(missing)(`boot media where DHCP cannot be changed${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(async () => {
    site = new MachineSite('media', { script, blobSize: 1 << 20 })
    edge = await site.startEdge('off')
    buildBootMedium(disc, [site.segment.edgeIp])
  })

  afterAll(async () => {
    await site.remove()
    scratch.remove()
  })

  test.for([
    { firmware: 'bios', clientArch: 0 },
    { firmware: 'uefi', clientArch: 7 },
  ] as const)('a $firmware machine boots from a disc', async ({ firmware, clientArch }) => {
    const machine = await site.powerOn(firmware, 0, { kind: 'cd', file: disc })
    const [, sum] = await machine.waitFor(/^BLOB (\w{32})/m)
    expect(sum, 'the root disk has the bytes of the image').toBe(site.disk.blobSum)
    await machine.waitFor(/^ACKNOWLEDGED/m)
    await machine.ended

    const report = await finishedBoot(edge, (boot) => boot.clientArch === clientArch)
    expect(report).toMatchObject({ userClass: 'bootfarm-media', outcome: { kind: 'ready' } })
    // None of it passed through the edge's DHCP.
    expect(report.phases.map(({ name }) => name)).toEqual(['loader', 'breather', 'stage2', 'ready'])
  })
})
