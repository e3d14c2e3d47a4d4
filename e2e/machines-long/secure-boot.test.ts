import { copyFileSync, mkdirSync } from 'node:fs'
import path from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { machinesMissing } from '../lib/device/machine-kernel.ts'
import { type MachinePlatform, x64Platform } from '../lib/device/machine-platform.ts'
import { bootProgramsMissing, importSets, signForSite, unpackedPackages } from '../lib/images/boot-programs.ts'
import { finishedBoot, MachineSite, type MachineSiteOptions } from '../lib/lab/machine-site.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'

const script = `
echo "BLOB $(md5sum /blob)"
bootfarm-target ready busybox && echo "ACKNOWLEDGED"
`
const missing = machinesMissing() ?? bootProgramsMissing()
const bootLimitMs = 240_000
const scratch = scratchDirectory()
const inScratch = (name: string) => path.join(scratch.path, name)
const sites: MachineSite[] = []

/** Makes a site whose edge has only the sets that `makeSets` makes. */
function siteWith(
  makeSets: (directory: string) => void,
  vmlinuz?: string,
  options: MachineSiteOptions = {},
): MachineSite {
  const x64 = x64Platform()
  if (!x64) throw new Error('no kernel for virtual machines')
  const kernel = vmlinuz ? { ...x64.kernel, vmlinuz } : x64.kernel
  const platform: MachinePlatform = { ...x64, kernel, bootPrograms: [], makeSets }
  const site = new MachineSite(`secure${'abc'[sites.length]}`, { script, blobSize: 1 << 20 }, { platform, ...options })
  sites.push(site)
  return site
}

/** Makes a folder with iPXE, signed with the site's key or unsigned. */
function folderOf(name: string, isSigned: boolean): string {
  const folder = inScratch(name)
  mkdirSync(folder)
  const program = '/usr/lib/ipxe/ipxe.efi'
  if (isSigned) signForSite(program, path.join(folder, 'ipxe.efi'), scratch.path)
  else copyFileSync(program, path.join(folder, 'ipxe.efi'))
  return folder
}

afterAll(async () => {
  for (const site of sites) await site.remove()
  scratch.remove()
})

describe.skipIf(missing)(`Secure Boot${missing ? ` (${missing})` : ''}`, () => {
  test("starts iPXE and a kernel that are signed with the site's key", {
    timeout: bootLimitMs,
  }, async () => {
    const vmlinuz = inScratch('vmlinuz')
    const folder = folderOf('signed', true)
    signForSite(x64Platform()?.kernel.vmlinuz ?? '', vmlinuz, scratch.path)
    const made = siteWith((directory) => importSets(directory, ['--set', 'site', '--from', folder]), vmlinuz)
    const edge = await made.startEdge()
    const machine = await made.powerOn('uefi-secure-site')
    const [, sum] = await machine.waitFor(/^BLOB (\w{32})/m)
    expect(sum).toBe(made.disk.blobSum)
    await machine.waitFor(/^ACKNOWLEDGED/m)
    await machine.ended
    const report = await finishedBoot(edge)
    expect(report).toMatchObject({ outcome: { kind: 'ready' }, program: { set: 'site', file: 'ipxe.efi' } })
  })

  test("starts shim, GRUB and Debian's kernel with Microsoft's keys", { timeout: bootLimitMs }, async () => {
    const made = siteWith(
      (directory) => importSets(directory, ['--set', 'shim-grub', '--from', unpackedPackages()]),
      undefined,
      { dhcpServer: false },
    )
    const edge = await made.startEdge('server')
    const machine = await made.powerOn('uefi-secure-microsoft')
    const [, sum] = await machine.waitFor(/^BLOB (\w{32})/m)
    expect(sum).toBe(made.disk.blobSum)
    await machine.waitFor(/^ACKNOWLEDGED/m)
    await machine.ended
    const report = await finishedBoot(edge)
    expect(report).toMatchObject({
      outcome: { kind: 'ready' },
      program: { set: 'shim-grub', file: 'shimx64.efi' },
    })
    const nbp = report.phases.find(({ name }) => name === 'nbp')
    expect(nbp?.bytesOut, 'both programs are in their phase').toBeGreaterThan(4_800_000)
  })

  test('refuses an unsigned program, and the boot says so', { timeout: bootLimitMs }, async () => {
    const folder = folderOf('unsigned', false)
    const made = siteWith((directory) => importSets(directory, ['--set', 'plain', '--from', folder]))
    const edge = await made.startEdge()
    await made.powerOn('uefi-secure-site')
    const report = await finishedBoot(edge)
    expect(report.outcome).toEqual({
      kind: 'failed',
      phase: 'nbp',
      cause: 'nbp_not_started',
      text: 'ipxe.efi',
    })
    expect(report.phases.map(({ name }) => name)).toEqual(['dhcp', 'nbp'])
  })
})
