import { execFileSync, spawnSync } from 'node:child_process'
import {
  closeSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import path from 'node:path'
import { edgeProgram } from '../lab/programs.ts'

/** The content of a file in an image: text, bytes, pieces with holes between them, or the target of a symbolic link. */
export type FileContent = string | Buffer | { pieces: { at: number; bytes: Buffer }[]; size: number } | { to: string }
export type Files = Record<string, FileContent>

/** The output of `bootfarm-edge image inspect --json`. */
export interface ImageReport {
  table: string
  sectorSizeBytes: number
  partitions: {
    number: number | null
    logicalVolume: string | null
    fileSystem: string | null
    role: string | null
    refused: string | null
  }[]
  boot: {
    foundBy: string
    origin: string
    kernel: { path: string; partition: number | null; sizeBytes: number }
    initramfs: { path: string }[]
    kernelRelease: string | null
    commandLine: string
    isPrepared: boolean
  } | null
  problem: string | null
  warnings: string[]
}

/** Makes a system count as prepared, as far as an image shows it; its own initramfs is then used. */
export const preparedFiles: Files = {
  'etc/initramfs-tools/hooks/bootfarm': '#!/bin/sh\n',
  'usr/lib/bootfarm/init.sh': '#!/bin/sh\n',
  'usr/bin/true': '',
}

/** Returns bytes that an edge accepts as a kernel, all blocks different. */
export function kernelBytes(size: number, seed = 1): Buffer {
  const bytes = Buffer.alloc(size)
  let state = seed
  for (let at = 0; at + 4 <= size; at += 4) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    bytes.writeUInt32LE(state, at)
  }
  bytes.set([0x1f, 0x8b], 0)
  return bytes
}

/** Returns a kernel with a hole after each piece, at every second `step` bytes. */
export function sparseKernel(size: number, step: number): { content: FileContent; whole: Buffer } {
  const bytes = kernelBytes(size)
  const pieces: { at: number; bytes: Buffer }[] = []
  for (let at = 0; at < size; at += 2 * step) {
    pieces.push({ at, bytes: bytes.subarray(at, Math.min(at + step, size)) })
    bytes.fill(0, Math.min(at + step, size), Math.min(at + 2 * step, size))
  }
  return { content: { pieces, size }, whole: bytes }
}

export function writeTree(directory: string, files: Files): void {
  rmSync(directory, { recursive: true, force: true })
  mkdirSync(directory, { recursive: true })
  for (const [name, content] of Object.entries(files)) {
    const file = path.join(directory, name)
    mkdirSync(path.dirname(file), { recursive: true })
    if (typeof content === 'string' || Buffer.isBuffer(content)) writeFileSync(file, content)
    else if ('to' in content) symlinkSync(content.to, file)
    else writeSparse(file, content)
  }
}

function writeSparse(file: string, { pieces, size }: { pieces: { at: number; bytes: Buffer }[]; size: number }) {
  const fd = openSync(file, 'w')
  for (const { at, bytes } of pieces) writeSync(fd, bytes, 0, bytes.length, at)
  ftruncateSync(fd, size)
  closeSync(fd)
}

/** Makes a file system with these files and returns its image; the options are those of mke2fs. */
export function makeExt(directory: string, name: string, files: Files, options: string[], sizeMib = 16): string {
  const tree = path.join(directory, `${name}.tree`)
  writeTree(tree, files)
  const image = path.join(directory, `${name}.raw`)
  rmSync(image, { force: true })
  quietly('mke2fs', ['-q', ...options, '-d', tree, image, `${sizeMib}M`])
  rmSync(tree, { recursive: true })
  return image
}

/** Makes a FAT volume with these files, with mkfs.vfat and mcopy. */
export function makeFat(directory: string, name: string, files: Files, bits: 12 | 16 | 32, sizeMib: number): string {
  const tree = path.join(directory, `${name}.tree`)
  writeTree(tree, files)
  const image = path.join(directory, `${name}.raw`)
  rmSync(image, { force: true })
  writeFileSync(image, '')
  execFileSync('truncate', ['-s', `${sizeMib}M`, image])
  quietly('/usr/sbin/mkfs.vfat', ['-F', `${bits}`, ...(bits === 32 ? ['-s', '1'] : []), image])
  const roots = [...new Set(Object.keys(files).map((file) => path.join(tree, file.split('/')[0] ?? '')))]
  quietly('mcopy', ['-s', '-i', image, ...roots, '::/'])
  rmSync(tree, { recursive: true })
  return image
}

/** Makes a disk from an sfdisk script, and puts each numbered file system at its offset in MiB. */
export function makeDisk(
  directory: string,
  script: string,
  parts: { image: string; atMib: number }[],
  sizeMib: number,
): string {
  const disk = path.join(directory, 'disk.raw')
  rmSync(disk, { force: true })
  writeFileSync(disk, '')
  execFileSync('truncate', ['-s', `${sizeMib}M`, disk])
  execFileSync('/usr/sbin/sfdisk', ['-q', disk], { input: script, stdio: ['pipe', 'ignore', 'pipe'] })
  for (const { image, atMib } of parts)
    quietly('dd', [`if=${image}`, `of=${disk}`, 'bs=1M', `seek=${atMib}`, 'conv=notrunc,sparse'])
  return disk
}

/** Sends requests to debugfs, which changes an image without mounting it. */
export function debugfs(image: string, ...requests: string[]): void {
  execFileSync('debugfs', ['-w', '-f', '-', image], {
    input: `${requests.join('\n')}\n`,
    stdio: ['pipe', 'ignore', 'pipe'],
  })
}

function quietly(program: string, args: string[]): void {
  execFileSync(program, args, { stdio: ['ignore', 'ignore', 'pipe'] })
}

/** Returns the image's report, or the error message. */
export function inspect(image: string): ImageReport {
  const { status, stdout, stderr } = spawnSync(edgeProgram, ['image', 'inspect', '--json', image], {
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(stderr)
  return JSON.parse(stdout)
}

/** Extracts kernel and initramfs of an image. */
export function extract(image: string, directory: string): { kernel: Buffer; initrd: Buffer; said: string } {
  const to = { kernel: path.join(directory, 'kernel'), initrd: path.join(directory, 'initrd') }
  const said = execFileSync(
    edgeProgram,
    ['image', 'extract', image, '--kernel-to', to.kernel, '--initrd-to', to.initrd],
    { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] },
  )
  return { kernel: readFileSync(to.kernel), initrd: readFileSync(to.initrd), said }
}

/** Flips one bit of a file. */
export function flipBit(file: string, at: number, bit: number): void {
  const fd = openSync(file, 'r+')
  const byte = Buffer.alloc(1)
  readSync(fd, byte, 0, 1, at)
  byte.writeUInt8(byte.readUInt8() ^ (1 << bit))
  writeSync(fd, byte, 0, 1, at)
  closeSync(fd)
}

/** Why such images cannot be made here; undefined where they can. */
export function imageToolsMissing(): string | undefined {
  const tools = {
    mke2fs: 'e2fsprogs',
    'mkfs.vfat': 'dosfstools',
    mcopy: 'mtools',
    sfdisk: 'fdisk',
    'mkfs.xfs': 'xfsprogs',
    'mkfs.btrfs': 'btrfs-progs',
    mksquashfs: 'squashfs-tools',
  }
  const folders = ['/usr/sbin', '/sbin', '/usr/bin', '/bin']
  const absent = Object.entries(tools).flatMap(([tool, debian]) =>
    folders.some((folder) => existsSync(path.join(folder, tool))) ? [] : [debian],
  )
  return absent.length > 0 ? `not installed: ${absent.join(', ')}` : undefined
}

/** An entry as Debian's update-grub writes it. */
export function grubMenu(kernel: string, ramdisk: string): string {
  return `set default="0"
menuentry 'Debian GNU/Linux' --class debian {
	search --no-floppy --fs-uuid --set=root 6f1e
	linux	${kernel} root=UUID=6f1e ro quiet console=ttyS0 $vt_handoff
	initrd	${ramdisk}
}
`
}
