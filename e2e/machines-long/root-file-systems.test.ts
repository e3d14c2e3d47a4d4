import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findMachineKernel } from '../lib/device/machine-kernel.ts'
import { sparseFile } from '../lib/images/file-system-images.ts'
import { makeMachineRoot } from '../lib/images/machine-disk.ts'
import { runInStorageGuest, storageGuestMissing } from '../lib/images/storage-guest.ts'
import { finishedBoot, MachineSite } from '../lib/lab/machine-site.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'

const missing = storageGuestMissing()
const script = `
echo "ROOT $(cat /etc/disk)"
echo "SYSTEM $(md5sum </bin/busybox)"
touch /written && echo "WRITTEN"
bootfarm-target ready busybox && echo "ACKNOWLEDGED"
`

describe.skipIf(missing)(`a system whose root is in${missing ? ` (${missing})` : ''}`, () => {
  const scratch = scratchDirectory()
  const inScratch = (...names: string[]) => path.join(scratch.path, ...names)
  const store = inScratch('store')
  const tree = inScratch('tree')
  let site: MachineSite | undefined

  beforeAll(() => {
    makeTree()
    const source = inScratch('source.raw')
    execFileSync('mke2fs', ['-q', '-t', 'ext4', '-d', tree, source, '256M'], { stdio: ['ignore', 'ignore', 'pipe'] })
    const [xfs, btrfs] = [sparseFile(scratch.path, 'xfs', 320), sparseFile(scratch.path, 'btrfs', 320)]
    runInStorageGuest(scratch.path, {
      disks: [source, xfs, btrfs],
      drivers: ['xfs', 'btrfs'],
      programs: ['/usr/sbin/mkfs.xfs', '/usr/sbin/mkfs.btrfs', '/usr/bin/btrfs'],
      commands: `
mount -t ext4 -o ro /dev/vda /from
mkfs.xfs -q /dev/vdb
mount -t xfs /dev/vdb /mnt
cp -a /from/. /mnt/
echo xfs >/mnt/etc/disk
umount /mnt
mkfs.btrfs -q /dev/vdc
mount -t btrfs -o compress=zstd /dev/vdc /mnt
btrfs subvolume create /mnt/@
cp -a /from/. /mnt/@/
echo btrfs >/mnt/@/etc/disk
umount /mnt
`,
    })
    writeFileSync(path.join(tree, 'etc/disk'), 'squashfs\n')
    const packing = ['-quiet', '-no-progress', '-all-root', '-comp', 'zstd', '-Xcompression-level', '3']
    execFileSync('mksquashfs', [tree, inScratch('squashfs.raw'), ...packing], { stdio: ['ignore', 'ignore', 'pipe'] })
    execFileSync(edgeProgram, ['vdisk', 'init', '--store', store])
    site = new MachineSite('roots', { script: '', blobSize: 0 })
  }, 300_000)

  afterAll(async () => {
    await site?.remove()
    scratch.remove()
  })

  function makeTree(): void {
    const kernel = findMachineKernel()
    if (!kernel) throw new Error('there is no kernel')
    makeMachineRoot(tree, script)
    mkdirSync(path.join(tree, 'etc/kernel'), { recursive: true })
    writeFileSync(path.join(tree, 'etc/kernel/cmdline'), 'console=ttyS0 quiet panic=-1 no_timer_check\n')
    for (const name of ['boot', 'lib'])
      cpSync(path.join(kernel.modules, name), path.join(tree, name), { recursive: true })
  }

  test.for(['xfs', 'btrfs', 'squashfs'])(
    '%s boots with the initramfs that is made of its modules',
    {
      timeout: 240_000,
    },
    async (name) => {
      if (!site) throw new Error('there is no site')
      const importing = [
        'vdisk',
        'import',
        inScratch(`${name}.raw`),
        '--store',
        store,
        '--name',
        name,
        '--pad',
        '--json',
      ]
      const said = execFileSync(edgeProgram, importing, { encoding: 'utf8' })
      const made = JSON.parse(said.trim().split('\n').at(-1) ?? '{}')
      if (name === 'btrfs') expect(made.commandLine).toContain('bootfarm.subvolume=@')
      const edge = await site.startStoreEdge(store, made.version)
      const machine = await site.powerOn('bios')
      await machine.waitFor(/^ACKNOWLEDGED/m)
      expect(machine.output).toMatch(new RegExp(`^ROOT ${name}`, 'm'))
      const [, sum] = /^SYSTEM (\w{32})/m.exec(machine.output) ?? []
      expect(sum).toBe(execFileSync('md5sum', ['/bin/busybox'], { encoding: 'utf8' }).slice(0, 32))
      expect(machine.output).toMatch(/^WRITTEN/m)
      expect(await machine.ended).toBe(0)
      expect((await finishedBoot(edge)).outcome).toEqual({ kind: 'ready' })
      await edge.stop()
    },
  )
})
