import { copyFileSync, mkdirSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { machinesMissing } from '../lib/device/machine-kernel.ts'
import { type MachinePlatform, x64Platform } from '../lib/device/machine-platform.ts'
import { bootProgramsMissing, importSets, unpackedPackages } from '../lib/images/boot-programs.ts'
import { finishedBoot, MachineSite } from '../lib/lab/machine-site.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'

const script = `
echo "BLOB $(md5sum /blob)"
bootfarm-target ready busybox && echo "ACKNOWLEDGED"
`
const missing = machinesMissing() ?? bootProgramsMissing()
const scratch = scratchDirectory()
let site: MachineSite
let edge: RunningProcess

describe.skipIf(missing)(`GRUB beside another DHCP server${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(async () => {
    const x64 = x64Platform()
    if (!x64) throw new Error('no kernel for virtual machines')
    const folder = path.join(scratch.path, 'grub')
    mkdirSync(folder)
    const grub = path.join(unpackedPackages(), 'usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed')
    copyFileSync(grub, path.join(folder, 'grubx64.efi'))
    const makeSets = (directory: string) => importSets(directory, ['--set', 'grub', '--from', folder])
    const platform: MachinePlatform = { ...x64, bootPrograms: [], makeSets }
    site = new MachineSite('grub', { script, blobSize: 1 << 20 }, { platform, dhcpServer: false })
    site.startDhcpServer([`--dhcp-boot=,,${site.segment.edgeIp}`])
    edge = await site.startEdge('proxy')
  })

  afterAll(async () => {
    await site.remove()
    scratch.remove()
  })

  test('boots where that server names the edge as next-server', { timeout: 180_000 }, async () => {
    const machine = await site.powerOn('uefi')
    const [, sum] = await machine.waitFor(/^BLOB (\w{32})/m)
    expect(sum).toBe(site.disk.blobSum)
    await machine.waitFor(/^ACKNOWLEDGED/m)
    await machine.ended
    const report = await finishedBoot(edge)
    expect(report).toMatchObject({
      outcome: { kind: 'ready' },
      program: { set: 'grub', file: 'grubx64.efi' },
    })
  })
})
