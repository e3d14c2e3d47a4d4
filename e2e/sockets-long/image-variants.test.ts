import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { afterAll, describe, expect, test } from 'vitest'
import {
  debugfs,
  extract,
  type Files,
  flipBit,
  grubMenu,
  imageToolsMissing,
  inspect,
  kernelBytes,
  makeExt,
  preparedFiles,
  sparseKernel,
} from '../lib/images/image-files.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'

const scratch = scratchDirectory()
afterAll(() => scratch.remove())
const missing = imageToolsMissing()
const title = missing ? ` (${missing})` : ''

const initrd = Buffer.from('initramfs of the image')
/** Several thousand names, and a path with many directories. */
const manyNames = Object.fromEntries(Array.from({ length: 1500 }, (_, index) => [`usr/share/many/name-${index}`, '']))
const deep = Array.from({ length: 20 }, (_, index) => `directory-${index}`).join('/')

describe.skipIf(missing)(`images that mke2fs makes are read exactly${title}`, () => {
  const { content, whole } = sparseKernel(3_000_001, 4096)
  const files: Files = {
    ...preparedFiles,
    ...manyNames,
    [`boot/${deep}/vmlinuz-6.1`]: content,
    'boot/vmlinuz': { to: `${deep}/vmlinuz-6.1` },
    'boot/initrd.img': initrd,
    'boot/grub/grub.cfg': grubMenu('/boot/vmlinuz', '/boot/initrd.img'),
  }

  test.each([
    { name: 'ext2, blocks of 1 KiB', fileSystem: 'ext2', options: ['-t', 'ext2', '-b', '1024'] },
    { name: 'ext2, blocks of 4 KiB', fileSystem: 'ext2', options: ['-t', 'ext2', '-b', '4096'] },
    {
      name: 'ext3, blocks of 2 KiB, small inodes',
      fileSystem: 'ext3',
      options: ['-t', 'ext3', '-b', '2048', '-I', '128'],
    },
    { name: 'ext4, blocks of 1 KiB', fileSystem: 'ext4', options: ['-t', 'ext4', '-b', '1024'] },
    { name: 'ext4, blocks of 2 KiB', fileSystem: 'ext4', options: ['-t', 'ext4', '-b', '2048'] },
    { name: 'ext4, blocks of 4 KiB', fileSystem: 'ext4', options: ['-t', 'ext4', '-b', '4096'] },
    {
      name: 'ext4 without 64bit and flex_bg',
      fileSystem: 'ext4',
      options: ['-t', 'ext4', '-b', '1024', '-O', '^64bit,^flex_bg,^metadata_csum'],
    },
    {
      name: 'ext4 with inline data',
      fileSystem: 'ext4',
      options: ['-t', 'ext4', '-I', '512', '-O', 'inline_data'],
    },
    {
      name: 'ext4 with meta_bg',
      fileSystem: 'ext4',
      options: ['-t', 'ext4', '-b', '1024', '-g', '1024', '-O', 'meta_bg,^resize_inode'],
    },
    {
      name: 'ext4 with bigalloc',
      fileSystem: 'ext4',
      options: ['-t', 'ext4', '-O', 'bigalloc', '-C', '16384'],
    },
    { name: 'ext4 without a journal', fileSystem: 'ext4', options: ['-t', 'ext4', '-O', '^has_journal'] },
  ])('$name', ({ fileSystem, options }) => {
    const image = makeExt(scratch.path, 'variant', files, [...options, '-N', '4096'], 24)
    const report = inspect(image)
    expect(report).toMatchObject({
      table: 'none',
      partitions: [{ number: null, fileSystem, role: 'root' }],
      boot: {
        foundBy: 'grub',
        origin: '/boot/grub/grub.cfg',
        commandLine: 'quiet console=ttyS0',
        isPrepared: true,
      },
      warnings: [],
    })
    const found = extract(image, scratch.path)
    expect(found.kernel.equals(whole), 'the kernel, holes and all').toBe(true)
    expect(found.initrd.equals(initrd)).toBe(true)
  })

  test('hashed directories, and a file behind three levels of indirect blocks', () => {
    const far = sparseKernel(70 << 20, 8 << 20)
    const image = makeExt(
      scratch.path,
      'far',
      { ...files, 'boot/vmlinuz': far.content },
      ['-t', 'ext2', '-b', '1024', '-N', '4096'],
      64,
    )
    expect(spawnSync('e2fsck', ['-fyD', image]).status).toBeLessThan(2)
    expect(extract(image, scratch.path).kernel.equals(far.whole)).toBe(true)
  })

  test('a file with scattered blocks', () => {
    const filling = Object.fromEntries(
      Array.from({ length: 1000 }, (_, index) => [`fill/${index}`, Buffer.alloc(4096, 'x')]),
    )
    const image = makeExt(
      scratch.path,
      'scattered',
      { ...preparedFiles, ...filling, 'boot/initrd.img-6.1': initrd },
      ['-t', 'ext4', '-b', '1024'],
      8,
    )
    const kernel = kernelBytes(1_900_000)
    const source = `${scratch.path}/kernel-source`
    writeFileSync(source, kernel)
    const removed = Array.from({ length: 500 }, (_, index) => `rm /fill/${index * 2}`)
    debugfs(image, ...removed, `write ${source} /boot/vmlinuz-6.1`)
    const extents = spawnSync('debugfs', ['-R', 'ex /boot/vmlinuz-6.1', image], { encoding: 'utf8' }).stdout
    expect(extents.split('\n').length, 'it has many extents').toBeGreaterThan(100)
    expect(extract(image, scratch.path).kernel.equals(kernel)).toBe(true)
  })

  test('a flipped bit anywhere ends in an answer', () => {
    const debian: Files = {
      ...preparedFiles,
      'boot/vmlinuz-6.1.0-18-amd64': kernelBytes(100_000),
      'boot/initrd.img-6.1.0-18-amd64': initrd,
    }
    const image = makeExt(scratch.path, 'flipped', debian, ['-t', 'ext4', '-b', '1024', '-N', '64'], 2)
    const bytes = readFileSync(image)
    const used = Array.from(bytes.keys()).filter((at) => bytes[at] !== 0 && at < 200_000)
    let state = 7
    for (let round = 0; round < 300; round++) {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0
      const at = used[state % used.length] ?? 0
      flipBit(image, at, round % 8)
      const { status, signal, stderr } = spawnSync(edgeProgram, ['image', 'inspect', '--json', image], {
        timeout: 20_000,
      })
      expect([signal, status], `byte ${at}, bit ${round % 8}: ${stderr}`).toBeOneOf([
        [null, 0],
        [null, 1],
      ])
      flipBit(image, at, round % 8)
    }
  })
})
