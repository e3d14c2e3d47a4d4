import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findMachineKernel, machinesMissing } from '../lib/device/machine-kernel.ts'
import { tarOf, writeDockerArchive } from '../lib/images/container-images.ts'
import { copyPrograms } from '../lib/images/host-programs.ts'
import { makeMachineRoot } from '../lib/images/machine-disk.ts'
import { finishedBoot, MachineSite } from '../lib/lab/machine-site.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'

/** Writes to the disk itself, which the edge keeps, and has the file system checked while it is mounted read-only. */
const script = `
read -r disk </run/bootfarm/disk
echo "ROOT $(grep " / " /proc/mounts | cut -d' ' -f3-)"
mkdir -p /written && busybox cp -a /lib/modules/*/kernel/fs /written/ && echo kept >/written/file && sync && echo "WRITTEN"
bootfarm-target ready busybox && echo "ACKNOWLEDGED"
mount -o remount,ro / && /sbin/e2fsck -fn "/dev/$disk"; echo "CHECKED $?"
echo "KERNEL $(busybox dmesg | grep -cE 'EXT4-fs.*(error|warning|recovery)|I/O error')"
`

const missing = machinesMissing()

describe.skipIf(missing)(`a container image with a kernel${missing ? ` (${missing})` : ''}`, () => {
  const scratch = scratchDirectory()
  const inScratch = (name: string) => path.join(scratch.path, name)
  const store = inScratch('store')
  let site: MachineSite | undefined
  let version = ''

  beforeAll(() => {
    const archive = makeArchive()
    execFileSync(edgeProgram, ['vdisk', 'init', '--store', store])
    const importing = ['vdisk', 'import', archive, '--store', store, '--name', 'Debian', '--size', '512M']
    const said = execFileSync(edgeProgram, importing, { encoding: 'utf8' })
    version = /imported version (\S+),/.exec(said)?.[1] ?? ''
    site = new MachineSite('container', { script: '', blobSize: 0 })
  })

  afterAll(async () => {
    await site?.remove()
    scratch.remove()
  })

  /** A small system, and above it what a kernel's package installs. */
  function makeArchive(): string {
    const system = inScratch('system')
    makeMachineRoot(system, script)
    copyPrograms(system, ['/sbin/e2fsck'])
    mkdirSync(path.join(system, 'etc/kernel'), { recursive: true })
    writeFileSync(path.join(system, 'etc/kernel/cmdline'), 'console=ttyS0 quiet panic=-1 no_timer_check\n')
    const layers = [tarOf(system, inScratch('system.tar'))]
    const installed = inScratch('kernel')
    const kernel = findMachineKernel()
    if (!kernel) throw new Error('there is no kernel')
    for (const folder of ['boot', 'lib'])
      cpSync(path.join(kernel.modules, folder), path.join(installed, folder), { recursive: true })
    layers.push(tarOf(installed, inScratch('kernel.tar')))
    const archive = inScratch('docker.tar')
    writeDockerArchive(archive, layers, inScratch('docker'))
    return archive
  }

  test('boots from an edge, writes to its disk, and leaves a whole file system', async () => {
    if (!site) throw new Error('there is no site')
    const edge = await site.startStoreEdge(store, version, ['--write-cache', 'private'])
    const machine = await site.powerOn('bios')
    await machine.waitFor(/^KERNEL \d/m)
    expect(machine.output).toMatch(/^ROOT ext4 rw/m)
    expect(machine.output).toMatch(/^WRITTEN/m)
    expect(machine.output).toMatch(/^ACKNOWLEDGED/m)
    expect(machine.output).toMatch(/Pass 5: /)
    expect(machine.output).toMatch(/^CHECKED 0/m)
    expect(machine.output).toMatch(/^KERNEL 0/m)
    expect(await machine.ended).toBe(0)
    expect((await finishedBoot(edge)).outcome).toEqual({ kind: 'ready' })
  })
})
