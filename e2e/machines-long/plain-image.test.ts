import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ensureSystemTree } from '../../scripts/lib/machines/system-root.mjs'
import { machinesMissing } from '../lib/device/machine-kernel.ts'
import { finishedBoot, MachineSite } from '../lib/lab/machine-site.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'

/** Debian's general kernel has ext4 as a module, which needs the modules of an alias (crypto-crc32c). */
const found = machinesMissing() ? undefined : await ensureSystemTree('full')
const missing = machinesMissing() ?? (found && 'missing' in found ? found.missing : undefined)
const sizes = { diskMib: 1580, rootMib: 1536, rootAtMib: 32 }

describe.skipIf(missing)(`an unprepared Debian${missing ? ` (${missing})` : ''}`, () => {
  const scratch = scratchDirectory()
  const inScratch = (name: string) => path.join(scratch.path, name)
  let site: MachineSite | undefined
  let commandLine = ''

  beforeAll(() => {
    if (!found || 'missing' in found) throw new Error('there is no Debian')
    const { release, tree } = found
    const image = inScratch('disk.raw')
    makeImage(image, tree, release)
    const said = execFileSync(
      edgeProgram,
      ['image', 'extract', image, '--kernel-to', inScratch('vmlinuz'), '--initrd-to', inScratch('initrd.img')],
      { encoding: 'utf8' },
    )
    expect(said).toContain("initramfs: built from the image's modules")
    commandLine = /^command line: (.*)$/m.exec(said)?.[1] ?? ''
    const root = { image, release, tree, vmlinuz: inScratch('vmlinuz'), initrd: inScratch('initrd.img') }
    site = new MachineSite('plain', { system: root, rootOffset: sizes.rootAtMib << 20 })
  }, 300_000)

  afterAll(async () => {
    await site?.remove()
    scratch.remove()
  })

  /** Creates an image as an installer leaves it: a GPT, the root in its second partition, and a grub.cfg. */
  function makeImage(image: string, tree: string, release: string): void {
    const root = inScratch('root')
    execFileSync('cp', ['-a', '--reflink=auto', tree, root])
    mkdirSync(path.join(root, 'boot/grub'))
    writeFileSync(
      path.join(root, 'boot/grub/grub.cfg'),
      `menuentry 'Debian' {\n\tlinux /boot/vmlinuz-${release} root=UUID=6f1e ro loglevel=4\n\tinitrd /boot/initrd.img-${release}\n}\n`,
    )
    writeFileSync(path.join(root, `boot/initrd.img-${release}`), 'of a disk that is not there')
    const fileSystem = inScratch('root.raw')
    execFileSync('mke2fs', ['-q', '-t', 'ext4', '-d', root, fileSystem, `${sizes.rootMib}M`])
    execFileSync('rm', ['-rf', root])
    copyFileSync('/dev/null', image)
    execFileSync('truncate', ['-s', `${sizes.diskMib}M`, image])
    const script = `label: gpt\nstart=1MiB, size=16MiB, type=U\nstart=${sizes.rootAtMib}MiB, size=${sizes.rootMib}MiB, type=L\n`
    execFileSync('/usr/sbin/sfdisk', ['-q', image], { input: script, stdio: ['pipe', 'ignore', 'pipe'] })
    const placed = ['bs=1M', `seek=${sizes.rootAtMib}`, 'conv=notrunc,sparse']
    execFileSync('dd', [`if=${fileSystem}`, `of=${image}`, ...placed], { stdio: 'ignore' })
  }

  test('boots with what `image extract` took out of its disk', { timeout: 600_000 }, async () => {
    if (!site) throw new Error('there is no site')
    expect(commandLine).toBe('loglevel=4 bootfarm.root=nbd0p2')
    const edge = await site.startEdge('proxy', commandLine)
    for (const machine of await site.powerOnAll('bios', 1)) {
      await machine.waitFor(/WITNESSED/)
      expect(machine.output).toMatch(/FAILED *\r?\n/)
      expect(machine.output).toMatch(/WRITTEN yes/)
      expect(await machine.ended).toBe(0)
    }
    const report = await finishedBoot(edge, () => true, 'the boot of the plain Debian')
    expect(report.outcome).toEqual({ kind: 'ready' })
  })
})
