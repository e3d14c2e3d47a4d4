import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import path from 'node:path'

const mib = 1 << 20
/** Start code from Debian's package syslinux-common. */
const startCode = '/usr/lib/syslinux/mbr/mbr.bin'
const partitionBegin = 2048
const sectorSize = 512
const sizeMib = 32

export interface WholeDiskOptions {
  directory: string
  vmlinuz: string
  /** An initramfs with busybox and drivers. */
  initrd: string
  commandLine: string
  /** What the first process runs: lines for busybox's shell. */
  script: string
}

/**
 * Makes a disk image that boots by itself on BIOS and UEFI machines: a partition table and one FAT16 partition with
 * SYSLINUX, a kernel and an initramfs, whose first process runs `script`.
 */
export function makeWholeDisk({ directory, vmlinuz, initrd, commandLine, script }: WholeDiskOptions): string {
  const folder = path.join(directory, 'whole-disk')
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder)
  const config = `DEFAULT linux
PROMPT 0
LABEL linux
  LINUX /vmlinuz
  INITRD /initrd.img
  APPEND rdinit=/first ${commandLine}
`
  const first = `#!/bin/sh\nexport PATH=/bin\n${script}\n`
  writeFileSync(path.join(folder, 'syslinux.cfg'), config)
  copyFileSync(vmlinuz, path.join(folder, 'vmlinuz'))
  // The kernel unpacks one archive after the other; each begins at a multiple of four bytes.
  writeFileSync(path.join(folder, 'initrd.img'), Buffer.concat([padded(readFileSync(initrd)), cpioOf('first', first)]))
  const partition = path.join(folder, 'partition')
  writeFileSync(partition, '')
  truncateSync(partition, (sizeMib - 1) * mib)
  run('mkfs.fat', '-F', '16', '-h', String(partitionBegin), partition)
  const files = ['syslinux.cfg', 'vmlinuz', 'initrd.img'].map((name) => path.join(folder, name))
  run('mcopy', '-i', partition, ...files, '::')
  run('mmd', '-i', partition, '::/EFI', '::/EFI/BOOT')
  const efi = '::/EFI/BOOT'
  run('mcopy', '-i', partition, '/usr/lib/SYSLINUX.EFI/efi64/syslinux.efi', `${efi}/BOOTX64.EFI`)
  run('mcopy', '-i', partition, '/usr/lib/syslinux/modules/efi64/ldlinux.e64', `${efi}/ldlinux.e64`)
  run('syslinux', '--install', partition)
  const image = path.join(folder, 'disk.raw')
  writeFileSync(image, Buffer.concat([partitionTable(), readFileSync(partition)]))
  return image
}

/** Returns the first MiB: start code and one active partition. */
function partitionTable(): Buffer {
  const head = Buffer.alloc(mib)
  readFileSync(startCode).copy(head)
  const entry = head.subarray(446, 462)
  entry[0] = 0x80
  // An EFI system partition, which other firmware reads as FAT; its position is given by the sector numbers below, not
  // by head and cylinder.
  entry.set([0xfe, 0xff, 0xff, 0xef, 0xfe, 0xff, 0xff], 1)
  entry.writeUInt32LE(partitionBegin, 8)
  entry.writeUInt32LE(((sizeMib - 1) * mib) / sectorSize, 12)
  head.writeUInt16LE(0xaa55, 510)
  return head
}

/** Makes a cpio archive (newc) with one program. */
function cpioOf(name: string, content: string): Buffer {
  return Buffer.concat([cpioEntry(name, 0o100755, Buffer.from(content)), cpioEntry('TRAILER!!!', 0, Buffer.alloc(0))])
}

function cpioEntry(name: string, mode: number, content: Buffer): Buffer {
  const fields = [1, mode, 0, 0, 1, 0, content.length, 0, 0, 0, 0, name.length + 1, 0]
  const header = `070701${fields.map((field) => field.toString(16).padStart(8, '0')).join('')}${name}\0`
  return Buffer.concat([padded(Buffer.from(header)), padded(content)])
}

const padded = (bytes: Buffer) => Buffer.concat([bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4)])

function run(command: string, ...args: string[]): void {
  execFileSync(command, args, { stdio: ['ignore', 'ignore', 'pipe'] })
}
