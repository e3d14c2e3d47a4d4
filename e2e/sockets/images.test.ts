import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { closeSync, existsSync, openSync, writeSync } from 'node:fs'
import path from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import {
  debugfs,
  extract,
  type Files,
  flipBit,
  imageToolsMissing,
  inspect,
  kernelBytes,
  makeDisk,
  makeExt,
  makeFat,
  preparedFiles,
} from '../lib/images/image-files.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'

const scratch = scratchDirectory()
afterAll(() => scratch.remove())

const missing = imageToolsMissing()
const title = missing ? ` (${missing})` : ''

const initrd = Buffer.from('initramfs of the image')

describe.skipIf(missing)(`a disk as distributions lay it out${title}`, () => {
  const kernel = kernelBytes(200_000)
  const root: Files = { ...preparedFiles, 'etc/os-release': 'ID=x\n' }
  const gpt = `label: gpt
start=1MiB, size=40MiB, type=U
start=48MiB, size=16MiB, type=L
start=64MiB, size=16MiB, type=L
`

  function disk(esp: Files, boot: Files, system: Files, script = gpt): string {
    return makeDisk(
      scratch.path,
      script,
      [
        { image: makeFat(scratch.path, 'esp', { 'EFI/BOOT/BOOTX64.EFI': 'MZ', ...esp }, 32, 36), atMib: 1 },
        { image: makeExt(scratch.path, 'boot', boot, ['-t', 'ext4']), atMib: 48 },
        { image: makeExt(scratch.path, 'root', system, ['-t', 'ext4']), atMib: 64 },
      ],
      96,
    )
  }

  test('Fedora: the newest entry in a boot partition, with options from GRUB’s environment', () => {
    const entry = (version: string) =>
      `title Fedora (${version})\nversion ${version}\nlinux /vmlinuz-${version}\ninitrd /initramfs-${version}.img $tuned_initrd\noptions $kernelopts rhgb\n`
    const image = disk(
      {},
      {
        'loader/entries/0a-0-rescue.conf': entry('0-rescue-0a'),
        'loader/entries/0a-6.9.4.conf': entry('6.9.4-200.fc40.x86_64'),
        'loader/entries/0a-6.10.3.conf': entry('6.10.3-200.fc40.x86_64'),
        'vmlinuz-0-rescue-0a': 'rescue',
        'vmlinuz-6.9.4-200.fc40.x86_64': 'old',
        'vmlinuz-6.10.3-200.fc40.x86_64': kernel,
        'initramfs-6.10.3-200.fc40.x86_64.img': initrd,
        'grub2/grubenv': 'saved_entry=0a-6.9.4\nkernelopts=root=UUID=1 ro rd.luks.uuid=2 quiet\n',
        'grub2/grub.cfg': 'blscfg\n',
      },
      root,
    )
    const report = inspect(image)
    expect(report).toMatchObject({
      table: 'gpt',
      partitions: [
        { number: 1, fileSystem: 'FAT32', role: null },
        { number: 2, fileSystem: 'ext4', role: 'boot' },
        { number: 3, fileSystem: 'ext4', role: 'root' },
      ],
      boot: {
        foundBy: 'boot_loader_specification',
        kernel: { partition: 2 },
        kernelRelease: '6.10.3-200.fc40.x86_64',
        commandLine: 'quiet rhgb',
      },
    })
    const found = extract(image, scratch.path)
    expect(found.kernel.equals(kernel)).toBe(true)
    expect(found.said).toContain('command line: quiet rhgb bootfarm.root=nbd0p3\n')
  })

  test('systemd-boot: entry, kernel and two initramfs on the EFI system partition, by long names', () => {
    const entry =
      'linux /0a1b/6.6.30-arch1/linux\ninitrd /0a1b/amd-ucode-with-a-long-name.img\ninitrd /0a1b/6.6.30-arch1/initrd\noptions root=LABEL=a rw\n'
    const image = disk(
      {
        'loader/entries/a-long-name-of-an-entry.conf': entry,
        '0a1b/6.6.30-arch1/linux': kernel,
        '0a1b/6.6.30-arch1/initrd': initrd,
        '0a1b/amd-ucode-with-a-long-name.img': 'ucode',
      },
      {},
      root,
    )
    const found = extract(image, scratch.path)
    expect(found.kernel.equals(kernel)).toBe(true)
    // The second archive begins at a multiple of four.
    expect(found.initrd.equals(Buffer.concat([Buffer.from('ucode\0\0\0'), initrd]))).toBe(true)
  })

  test('extlinux, and kernels by their names alone', () => {
    const names = {
      'boot/vmlinuz-6.1.0-9-amd64': 'old',
      'boot/vmlinuz-6.1.0-18-amd64': kernel,
      'boot/vmlinuz-6.1.0-18-amd64.old': 'older',
      'boot/initrd.img-6.1.0-18-amd64': initrd,
      'etc/default/grub': 'GRUB_CMDLINE_LINUX="console=tty0"\nGRUB_CMDLINE_LINUX_DEFAULT="quiet resume=UUID=1"\n',
    }
    expect(inspect(makeExt(scratch.path, 'names', { ...root, ...names }, ['-t', 'ext4'])).boot).toMatchObject({
      foundBy: 'names',
      kernel: { path: '/boot/vmlinuz-6.1.0-18-amd64' },
      kernelRelease: '6.1.0-18-amd64',
      commandLine: 'console=tty0 quiet',
    })
    const configuration =
      'DEFAULT new\nLABEL old\nLINUX ../vmlinuz-6.1.0-9-amd64\nLABEL new\nLINUX ../vmlinuz-6.1.0-18-amd64\nAPPEND root=/dev/sda1 splash\nINITRD ../initrd.img-6.1.0-18-amd64\n'
    const image = makeExt(scratch.path, 'ext', { ...root, ...names, 'boot/extlinux/extlinux.conf': configuration }, [
      '-t',
      'ext4',
    ])
    expect(inspect(image).boot).toMatchObject({ foundBy: 'extlinux', commandLine: 'splash' })
  })

  test('MBR: the root in a logical partition', () => {
    const script =
      'label: dos\nstart=1MiB, size=40MiB, type=ef\nstart=47MiB, size=48MiB, type=5\nstart=48MiB, size=15MiB, type=83\nstart=64MiB, size=16MiB, type=83\n'
    const image = disk({}, {}, { ...root, 'boot/vmlinuz-6.1': kernel, 'boot/initrd.img-6.1': initrd }, script)
    const report = inspect(image)
    expect(report.table).toBe('mbr')
    expect(report.partitions.map(({ number, role }) => [number, role])).toEqual([
      [1, null],
      [5, null],
      [6, 'root'],
    ])
    expect(extract(image, scratch.path).said).toContain('bootfarm.root=nbd0p6')
  })

  test('a damaged GPT is read from its copy, with a warning; two damaged ones are an error', () => {
    const image = disk({}, {}, { ...root, 'boot/vmlinuz-6.1': kernel, 'boot/initrd.img-6.1': initrd })
    flipBit(image, 512 + 40, 3)
    const report = inspect(image)
    expect(report.boot?.kernel.partition).toBe(3)
    expect(report.warnings.join()).toMatch(/partition table at the start of the disk is damaged/)
    flipBit(image, (96 << 20) - 512 + 40, 3)
    expect(() => inspect(image)).toThrow(/has a damaged partition table, and its copy .* damaged too/)
  })
})

describe.skipIf(missing)(`an image without usable boot files says why${title}`, () => {
  const debian: Files = {
    ...preparedFiles,
    'boot/vmlinuz-6.1.0-18-amd64': kernelBytes(100_000),
    'boot/initrd.img-6.1.0-18-amd64': initrd,
  }

  function refusal(image: string): string {
    const { status, stderr } = spawnSync(
      edgeProgram,
      ['image', 'extract', image, '--kernel-to', `${scratch.path}/no`],
      {
        encoding: 'utf8',
      },
    )
    expect(status).toBe(1)
    expect(existsSync(`${scratch.path}/no`), 'nothing half there').toBe(false)
    return stderr
  }

  test('an unreplayed journal is refused; an empty one is accepted', () => {
    const image = makeExt(scratch.path, 'journal', debian, ['-t', 'ext4'])
    debugfs(image, 'feature +needs_recovery')
    expect(inspect(image).boot?.kernelRelease).toBe('6.1.0-18-amd64')
    debugfs(image, 'jo', 'jw -b 500 /dev/zero', 'jc')
    expect(refusal(image)).toMatch(/was not unmounted: boot and shut it down first/)
    expect(inspect(image)).toMatchObject({ boot: null, partitions: [{ refused: 'not_unmounted' }] })
  })

  test('an unprepared system without modules', () => {
    const { 'usr/lib/bootfarm/init.sh': _, ...plain } = debian
    expect(refusal(makeExt(scratch.path, 'plain', plain, ['-t', 'ext4']))).toMatch(
      /no initramfs can be made for \/boot\/vmlinuz-6.1.0-18-amd64: there are no modules of kernel 6.1.0-18-amd64 in \/; there are none/,
    )
  })

  test('a file system with unknown features, no unified kernel, no kernel, and a file that is no disk', () => {
    const xfs = makeExt(scratch.path, 'xfs', {}, ['-t', 'ext2'])
    const fd = openSync(xfs, 'r+')
    writeSync(fd, Buffer.alloc(4096), 0, 4096, 0)
    writeSync(
      fd,
      Buffer.concat([Buffer.from('XFSB'), Buffer.from([0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0x10, 0])]),
      0,
      16,
      0,
    )
    closeSync(fd)
    expect(refusal(xfs)).toMatch(
      /kernel and initramfs have to be given \(--kernel, --initrd\): the file system has an unknown feature/,
    )
    const unified = makeFat(scratch.path, 'uki', { 'EFI/Linux/arch.efi': 'MZ' }, 16, 16)
    expect(refusal(unified)).toMatch(/\/EFI\/Linux\/arch\.efi is not a unified kernel image, or is cut/)
    expect(refusal(makeExt(scratch.path, 'none', { 'etc/x': '' }, ['-t', 'ext4']))).toMatch(/no kernel was found/)
    expect(refusal('/nowhere/disk.raw')).toMatch(/\/nowhere\/disk\.raw does not exist/)
    expect(refusal(edgeProgram)).toMatch(/is not a disk image|no known file system/)
  })
})

test.skipIf(missing)(`a version is imported with what its image boots with${title}`, async () => {
  const kernel = kernelBytes(150_000)
  const files: Files = {
    ...preparedFiles,
    'boot/vmlinuz-6.1.0-18-amd64': kernel,
    'boot/initrd.img-6.1.0-18-amd64': initrd,
    'etc/kernel/cmdline': 'root=UUID=1 ro quiet splash\n',
  }
  const image = makeDisk(
    scratch.path,
    'label: dos\nstart=1MiB, size=16MiB, type=83\n',
    [{ image: makeExt(scratch.path, 'imported', files, ['-t', 'ext4']), atMib: 1 }],
    24,
  )
  const store = path.join(scratch.path, 'store')
  const vdisk = (...args: string[]) => {
    const { stdout, stderr, status } = spawnSync(edgeProgram, ['vdisk', ...args, '--store', store, '--json'], {
      encoding: 'utf8',
    })
    expect([status, stderr]).toEqual([0, ''])
    const last = stdout.trim().split('\n').at(-1) ?? ''
    return JSON.parse(last) as { version: string; commandLine: string }
  }
  vdisk('init')
  const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
  const taken = {
    kernel: { sha256: sha256(kernel), sizeBytes: kernel.length },
    initrd: { sha256: sha256(initrd), sizeBytes: initrd.length },
  }
  const made = vdisk('import', image, '--name', 'Debian')
  expect(made).toMatchObject({ ...taken, commandLine: 'quiet splash bootfarm.root=nbd0p1' })
  for (const { sha256 } of [taken.kernel, taken.initrd])
    expect(existsSync(path.join(store, 'boot-bundles', sha256))).toBe(true)
  const other = vdisk('import', image, '--parent', made.version, '--cmdline', 'debug')
  expect(other).toMatchObject({ ...taken, commandLine: 'debug' })
  const bare = vdisk('import', image, '--parent', made.version, '--no-boot-files')
  expect(bare).toMatchObject({ kernel: null, initrd: null, commandLine: '' })
  const same = vdisk('import', image, '--parent', made.version, '--parent-boot-files')
  expect(same).toMatchObject({ ...taken, commandLine: made.commandLine })
})
