import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { deflateSync, zstdCompressSync } from 'node:zlib'
import { scratchDirectory } from '../lab/programs.ts'
import { tarOf } from './container-images.ts'
import { makeBtrfs, makeSquashfs, makeXfs } from './file-system-images.ts'
import { type Files, writeTree } from './image-files.ts'

/**
 * Makes the file systems that the edge's unit tests and its fuzzer read, with the tools of this machine:
 *
 *     node e2e/lib/images/golden-file-systems.ts
 *
 * Each is a zlib stream: the number of sectors of the disk, and then the number and the bytes of each sector that is
 * not all zeros. `layer.tar.zst` is a layer of a container image.
 */
const directory = path.resolve(import.meta.dirname, '../../../edge/streamer-zig/src/image/golden')
const sectorSize = 512

/** Must be the kernel of `image/test_disk.zig`. */
const kernel = Buffer.concat([Buffer.from([0x1f, 0x8b]), Buffer.alloc(14_000, 'k')])

const files: Files = {
  'etc/kernel/cmdline': 'root=UUID=1 ro quiet\n',
  'usr/bin/true': '',
  'usr/lib/modules/6.1/vmlinuz': kernel,
  'boot/vmlinuz-6.1': { to: '../usr/lib/modules/6.1/vmlinuz' },
  'boot/initrd.img-6.1': { to: `${'./'.repeat(300)}initrd` },
  'boot/initrd': 'initrd '.repeat(1000),
}
for (let index = 0; index < 150; index += 1) files[`usr/lib/many/a-rather-long-name-of-file-${index}`] = ''

function save(name: string, image: string): void {
  const bytes = readFileSync(image)
  const count = Buffer.alloc(4)
  count.writeUInt32LE(Math.ceil(bytes.length / sectorSize))
  const parts = [count]
  for (let at = 0; at < bytes.length; at += sectorSize) {
    const sector = Buffer.alloc(sectorSize)
    bytes.copy(sector, 0, at, at + sectorSize)
    if (sector.every((byte) => byte === 0)) continue
    const index = Buffer.alloc(4)
    index.writeUInt32LE(at / sectorSize)
    parts.push(index, sector)
  }
  writeFileSync(path.join(directory, `${name}.zlib`), deflateSync(Buffer.concat(parts), { level: 9 }))
}

const scratch = scratchDirectory()
const made = { directory: scratch.path, name: 'golden', files, sizeMib: 16 }
// mkfs.xfs makes smaller file systems than 300 MiB only for tests.
for (const name of ['TEST_DIR', 'TEST_DEV', 'QA_CHECK_FS']) process.env[name] = 'yes'
// mkfs.xfs writes targets that do not fit an inode without the header of version 5.
const short: Files = { ...files, 'boot/initrd.img-6.1': { to: 'initrd' } }
save('xfs-v5', makeXfs({ ...made, files: short, options: ['-d', 'agcount=1'] }))
save('xfs-v4', makeXfs({ ...made, options: ['-m', 'crc=0', '-b', 'size=1024', '-d', 'agcount=1'] }))
save('btrfs', makeBtrfs({ ...made, sizeMib: 128, options: ['--nodesize', '4096', '-m', 'dup'] }))
for (const codec of ['gzip', 'xz', 'zstd', 'lz4', 'lzo'])
  save(`squashfs-${codec}`, makeSquashfs({ ...made, options: ['-comp', codec] }))
const plain = ['-noI', '-noD', '-noF', '-b', '4096', '-no-fragments']
save('squashfs-plain', makeSquashfs({ ...made, options: plain }))
const layer = path.join(scratch.path, 'layer')
const words = (count: number) => Array.from({ length: count }, (_, index) => `line ${index} of ${count}\n`).join('')
writeTree(layer, { 'sbin/init': '#!/bin/sh\n', 'etc/words': words(300), 'etc/more': words(40) })
writeFileSync(
  path.join(directory, 'layer.tar.zst'),
  zstdCompressSync(tarOf(layer, path.join(scratch.path, 'layer.tar'))),
)
scratch.remove()
