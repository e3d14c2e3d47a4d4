import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { closeSync, openSync, readSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { filesRead } from '@bootfarm/proto/uplink'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { makeBtrfs, makeSquashfs, makeXfs } from '../lib/images/file-system-images.ts'
import { type Files, imageToolsMissing, makeDisk, makeExt, makeFat } from '../lib/images/image-files.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'

/** One line of `vdisk files --json`. */
interface Extent {
  offset: number
  bytes: number
  kind: string
  name: string
}

const scratch = scratchDirectory()
afterAll(() => scratch.remove())

const missing = imageToolsMissing()
const title = missing ? ` (${missing})` : ''
const store = path.join(scratch.path, 'store')

const files: Files = {
  'etc/hostname': 'a small file\n',
  'usr/lib/large': randomBytes(3_000_001),
  'usr/lib/middle': randomBytes(70_000),
  'usr/bin/tool': randomBytes(200_003),
}
const contents = Object.entries(files).filter((entry): entry is [string, Buffer] => Buffer.isBuffer(entry[1]))

function vdisk(...args: string[]): string {
  return execFileSync(edgeProgram, ['vdisk', ...args, '--store', store], {
    encoding: 'utf8',
    maxBuffer: 64 << 20,
  })
}

function imported(image: string): string {
  const lines = vdisk('import', image, '--name', 'mapped', '--no-boot-files', '--json').trim().split('\n')
  return JSON.parse(lines.at(-1) ?? '').version
}

function mapOf(version: string): Extent[] {
  const lines = vdisk('files', '--version', version, '--json').trim().split('\n')
  return lines.map((line) => JSON.parse(line) as Extent)
}

/** The bytes that the map names for a file, in the order of the disk; these images have no file in another one. */
function bytesOf(image: string, map: Extent[], name: string): Buffer {
  const fd = openSync(image, 'r')
  try {
    return Buffer.concat(
      map
        .filter((extent) => extent.name === name)
        .map(({ offset, bytes }) => {
          const part = Buffer.alloc(bytes)
          readSync(fd, part, 0, bytes, offset)
          return part
        }),
    )
  } finally {
    closeSync(fd)
  }
}

function expectMapped(image: string, prefix = ''): Extent[] {
  const map = mapOf(imported(image))
  for (const [name, content] of contents) {
    const found = bytesOf(image, map, `${prefix}/${name}`)
    expect(found.subarray(0, content.length).equals(content), name).toBe(true)
  }
  return map
}

describe.skipIf(missing)(`which file holds which bytes${title}`, () => {
  beforeAll(() => {
    execFileSync(edgeProgram, ['vdisk', 'init', '--store', store])
  })

  test.each([
    ['ext4', ['-t', 'ext4', '-b', '4096']],
    ['ext4 of 1 KiB blocks', ['-t', 'ext4', '-b', '1024']],
    ['ext3', ['-t', 'ext3', '-b', '4096']],
    ['ext2', ['-t', 'ext2', '-b', '1024']],
  ])('%s', (type, options) => {
    const image = makeExt(scratch.path, 'ext', files, options, 32)
    // In ext2 and ext3, blocks that list others lie between those of a file.
    const map = type.startsWith('ext4') ? expectMapped(image) : mapOf(imported(image))
    const names = map.map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(['/', '/usr/', '/usr/lib/', '/lost+found/', '/etc/hostname']))
    // Every block that the file system's own tool names for a file, and no other.
    const blockSize = options.includes('1024') ? 1024 : 4096
    const listed = execFileSync('/usr/sbin/debugfs', ['-R', 'blocks /usr/lib/large', image], {
      encoding: 'utf8',
      stdio: 'pipe',
    })
    const blocks = listed.trim().split(/\s+/).map(Number)
    const mapped = map
      .filter(({ name }) => name === '/usr/lib/large')
      .flatMap(({ offset, bytes }) =>
        Array.from({ length: bytes / blockSize }, (_block, index) => offset / blockSize + index),
      )
    expect(mapped).toEqual(expect.arrayContaining(blocks.toSorted((a, b) => a - b)))
    // debugfs leaves out the blocks that only list others.
    expect(mapped.length - blocks.length).toBeLessThanOrEqual(16)
  })

  test('FAT, XFS, Btrfs and Squashfs', () => {
    const made = { directory: scratch.path, name: 'made', files }
    expectMapped(makeFat(scratch.path, 'fat', files, 16, 40))
    expectMapped(makeFat(scratch.path, 'fat', files, 32, 40))
    expectMapped(makeXfs(made))
    expectMapped(makeBtrfs(made))
    expectMapped(makeSquashfs({ ...made, options: ['-noI', '-noD', '-no-fragments'] }))
  })

  test('partitions, and what a boot read of them', () => {
    const root = makeExt(scratch.path, 'root', files, ['-t', 'ext4'], 32)
    const disk = makeDisk(scratch.path, 'label: gpt\n4MiB 32MiB L\n40MiB 8MiB S\n', [{ image: root, atMib: 4 }], 64)
    const version = imported(disk)
    const map = mapOf(version)
    expect(map[0]).toMatchObject({ offset: 0, kind: 'area', name: 'partition table' })
    const large = map.find(({ name }) => name.endsWith('/usr/lib/large'))
    if (!large) throw new Error('the file is not mapped')
    const list = path.join(scratch.path, 'boot.reads')
    writeFileSync(
      list,
      readList(version, [
        { offset: large.offset, bytes: 65_536 },
        { offset: 0, bytes: 512 },
      ]),
    )
    const summary = filesRead.parse(JSON.parse(vdisk('files', '--version', version, '--reads', list, '--json')))
    expect(summary).toMatchObject({ reads: 2, bytes: 66_048, namedBytes: 66_048, fileCount: 2 })
    expect(summary.files.map(({ name }) => name)).toEqual([large.name, 'partition table'])
    expect(vdisk('files', '--version', version, '--reads', list)).toContain(large.name)
    expect(() => vdisk('files', '--version', version, '--reads', disk)).toThrow(/is not a list of what a boot read/)
    expect(() => vdisk('files', '--version', version, '--report', list)).toThrow(/--report needs --reads FILE/)
  })
})

/** The list that an edge keeps of a boot: docs/reference/files-read.md. */
function readList(version: string, reads: { offset: number; bytes: number }[]): Buffer {
  const head = Buffer.alloc(64)
  head.write('BFREADS1', 'latin1')
  Buffer.from(version.replaceAll('-', ''), 'hex').copy(head, 24)
  const records = reads.map(({ offset, bytes }, index) => {
    const number = BigInt(index * 1000) | (BigInt(offset / 512) << 40n) | (BigInt(bytes / 512) << 80n) | (1234n << 96n)
    const record = Buffer.alloc(16)
    record.writeBigUInt64LE(number & 0xffffffffffffffffn)
    record.writeBigUInt64LE(number >> 64n, 8)
    return record
  })
  return Buffer.concat([head, ...records])
}
