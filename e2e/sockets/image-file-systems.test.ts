import { execFileSync } from 'node:child_process'
import { closeSync, openSync, readFileSync, truncateSync, writeSync } from 'node:fs'
import path from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { makeBtrfs, makeSquashfs, makeXfs, sparseFile } from '../lib/images/file-system-images.ts'
import {
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

// Random and compressible parts, so that both kinds of block are there, and a last part of a block.
const kernel = Buffer.concat([kernelBytes(300_000), Buffer.alloc(600_000, 'pages of text '), kernelBytes(7001, 2)])
const initrd = Buffer.from('initramfs of the image')
const modules = 'usr/lib/modules/6.1.0-18-amd64'
const files: Files = {
  ...preparedFiles,
  [`${modules}/vmlinuz`]: kernel,
  'boot/vmlinuz-6.1.0-18-amd64': { to: `../${modules}/vmlinuz` },
  'boot/initrd.img-6.1.0-18-amd64': { to: `/${'boot/../'.repeat(90)}boot/initrd` },
  'boot/initrd': initrd,
  'etc/kernel/cmdline': 'root=UUID=1 ro quiet\n',
}
// Enough names for several blocks of a directory; the boot files come behind them.
for (let index = 0; index < 2500; index += 1) files[`boot/a-file-beside-the-kernel-${index}`] = ''

function expectRead(image: string, fileSystem: string): void {
  expect(inspect(image)).toMatchObject({
    partitions: [{ fileSystem, role: 'root', refused: null }],
    boot: { kernelRelease: '6.1.0-18-amd64', commandLine: 'quiet' },
    problem: null,
    warnings: [],
  })
  const found = extract(image, scratch.path)
  expect(found.kernel.equals(kernel)).toBe(true)
  expect(found.initrd.equals(initrd)).toBe(true)
}

const made = { directory: scratch.path, name: 'made', files }

describe.skipIf(missing)(`file systems made by their own tools${title}`, () => {
  test.each(['gzip', 'xz', 'zstd', 'lz4', 'lzo'])('Squashfs packed by %s', (codec) => {
    expectRead(makeSquashfs({ ...made, options: ['-comp', codec] }), 'Squashfs')
  })

  test('Squashfs without packing, with small blocks and without fragments; a codec that is not read is named', () => {
    expectRead(makeSquashfs({ ...made, options: ['-noI', '-noD', '-noF', '-b', '4096'] }), 'Squashfs')
    expectRead(makeSquashfs({ ...made, options: ['-no-fragments', '-b', '1M'] }), 'Squashfs')
    const image = makeSquashfs({ ...made, options: ['-comp', 'lzma'] })
    expect(inspect(image)).toMatchObject({ boot: null, partitions: [{ refused: 'unknown_codec' }] })
  })

  test.each([
    ['version 5', []],
    ['version 4', ['-m', 'crc=0']],
    ['small blocks, and directories in larger ones', ['-b', 'size=1024', '-n', 'size=8192']],
    ['large inodes, and directories in the largest blocks', ['-i', 'size=2048', '-n', 'size=65536']],
    ['old timestamps and inodes in whole groups', ['-m', 'bigtime=0', '-i', 'sparse=0']],
  ])('XFS: %s', (_, options) => {
    // mkfs.xfs writes targets that do not fit an inode without the header of version 5.
    const short: Files = { ...files, 'boot/initrd.img-6.1.0-18-amd64': { to: 'initrd' } }
    expectRead(makeXfs({ ...made, files: short, options }), 'XFS')
  })

  test.each([
    ['CRC-32C', []],
    ['xxHash', ['--csum', 'xxhash']],
    ['SHA-256', ['--csum', 'sha256']],
    ['BLAKE2', ['--csum', 'blake2']],
    ['small nodes, data and metadata together', ['--mixed', '--nodesize', '4096', '-M']],
    ['single metadata, and extents with holes', ['-m', 'single', '-O', '^no-holes', '--nodesize', '65536']],
  ])('Btrfs: %s', (_, options) => {
    expectRead(makeBtrfs({ ...made, options }), 'Btrfs')
  })

  test('a damaged sector of a file of Btrfs is an error, never other bytes', () => {
    const image = makeBtrfs({ ...made, options: ['-d', 'single'] })
    const bytes = readFileSync(image)
    flipBit(image, bytes.indexOf(kernel.subarray(8192, 8256)) + 5, 3)
    expect(() => extract(image, scratch.path)).toThrow(/is damaged where its boot files are/)
  })

  test('a file system that was cut is reported', () => {
    const image = makeXfs({ ...made, files: preparedFiles })
    truncateSync(image, 300 << 20)
    expect(inspect(image).warnings.join()).toMatch(/the image was truncated/)
  })
})

describe.skipIf(missing)(`a disk with sectors of 4096 bytes${title}`, () => {
  function largeSectors(): string {
    const disk = sparseFile(scratch.path, 'large', 64)
    execFileSync('/usr/sbin/fdisk', ['--sector-size', '4096', disk], {
      input: 'g\nn\n1\n2048\n4095\nn\n2\n4096\n12287\nw\n',
      stdio: ['pipe', 'ignore', 'pipe'],
    })
    const root = makeExt(scratch.path, 'large-root', files, ['-t', 'ext4'])
    const fd = openSync(disk, 'r+')
    writeSync(fd, readFileSync(root), 0, undefined, 16 << 20)
    closeSync(fd)
    return disk
  }

  test('its partitions are read, also from the copy of the table', () => {
    const disk = largeSectors()
    const seen = { table: 'gpt', sectorSizeBytes: 4096, boot: { kernel: { partition: 2 } } }
    expect(inspect(disk)).toMatchObject({ ...seen, warnings: [] })
    flipBit(disk, 4096 + 40, 3)
    expect(inspect(disk)).toMatchObject(seen)
    const found = extract(disk, scratch.path)
    expect(found.kernel.equals(kernel)).toBe(true)
    expect(found.said).toContain('warning: the partition table is for sectors of 4096 bytes')
  })

  test('it is not imported with boot files that would not find its root', () => {
    const store = path.join(scratch.path, 'store')
    execFileSync(edgeProgram, ['vdisk', 'init', '--store', store])
    const importing = ['vdisk', 'import', largeSectors(), '--store', store, '--name', 'large']
    expect(() => execFileSync(edgeProgram, importing, { encoding: 'utf8', stdio: 'pipe' })).toThrow(
      /sectors of 4096 bytes, and devices get sectors of 512; the initramfs has to be given/,
    )
  })
})

describe.skipIf(missing)(`unified kernel images${title}`, () => {
  /** A UEFI program with these sections, in the layout that ukify gives it. */
  function unifiedImage(sections: Record<string, Buffer | string>): Buffer {
    const headerSize = 0x400
    const entries = Object.entries(sections).map(([section, content]) => ({ section, bytes: Buffer.from(content) }))
    const header = Buffer.alloc(headerSize)
    header.write('MZ', 0, 'latin1')
    header.writeUInt32LE(0x80, 0x3c)
    header.write('PE\0\0', 0x80, 'latin1')
    header.writeUInt16LE(0x8664, 0x84)
    header.writeUInt16LE(entries.length, 0x86)
    header.writeUInt16LE(0xf0, 0x94)
    let end = headerSize
    const stored = entries.map(({ section, bytes }, index) => {
      const at = 0x98 + 0xf0 + index * 40
      header.write(section, at, 'latin1')
      header.writeUInt32LE(bytes.length, at + 8)
      header.writeUInt32LE(Math.ceil(bytes.length / 512) * 512, at + 16)
      header.writeUInt32LE(end, at + 20)
      end += Math.ceil(bytes.length / 512) * 512
      return Buffer.concat([bytes], Math.ceil(bytes.length / 512) * 512)
    })
    return Buffer.concat([header, ...stored])
  }

  test('the newest one is used: its kernel, its initramfs behind the microcode, its command line', () => {
    const sections = {
      '.osrel': 'ID=x\n',
      '.uname': '6.9.4-200.fc40.x86_64',
      '.cmdline': 'root=UUID=1 ro rhgb quiet\n',
    }
    const newest = unifiedImage({ ...sections, '.ucode': 'ucode', '.linux': kernel, '.initrd': initrd })
    const older = unifiedImage({ '.linux': kernelBytes(20_000), '.initrd': 'old' })
    const image = makeFat(
      scratch.path,
      'unified',
      { 'EFI/Linux/0a1b-6.10.3.efi': newest, 'EFI/Linux/0a1b-6.9.4.efi': older },
      16,
      16,
    )
    expect(inspect(image).boot).toMatchObject({
      foundBy: 'unified',
      origin: '/EFI/Linux/0a1b-6.10.3.efi',
      kernel: { path: '/EFI/Linux/0a1b-6.10.3.efi', sizeBytes: kernel.length },
      kernelRelease: '6.9.4-200.fc40.x86_64',
      commandLine: 'rhgb quiet',
    })
    const to = path.join(scratch.path, 'unified-kernel')
    execFileSync(edgeProgram, ['image', 'extract', withRoot(image), '--kernel-to', to, '--initrd-to', `${to}.initrd`])
    expect(readFileSync(to).equals(kernel)).toBe(true)
    // The second archive begins at a multiple of four.
    expect(readFileSync(`${to}.initrd`).equals(Buffer.concat([Buffer.from('ucode\0\0\0'), initrd]))).toBe(true)
  })

  /** With a prepared root, so that the initramfs of the image is used. */
  function withRoot(esp: string): string {
    const parts = [
      { image: esp, atMib: 1 },
      { image: makeExt(scratch.path, 'unified-root', preparedFiles, ['-t', 'ext4']), atMib: 20 },
    ]
    return makeDisk(
      scratch.path,
      'label: gpt\nstart=1MiB, size=16MiB, type=U\nstart=20MiB, size=16MiB, type=L\n',
      parts,
      40,
    )
  }
})
