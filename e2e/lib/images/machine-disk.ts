import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, copyFileSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'

const applets = [
  'sh',
  'cat',
  'cut',
  'grep',
  'head',
  'ls',
  'md5sum',
  'mkdir',
  'mount',
  'poweroff',
  'ps',
  'seq',
  'sleep',
  'sync',
  'touch',
]

export interface MachineDisk {
  image: string
  /** The MD5 of /blob on the disk, as md5sum prints it. */
  blobSum: string
}

/**
 * Makes an ext4 disk image with busybox, `blobSize` bytes in /blob, and an init that runs `script`. The running target
 * is /run/bootfarm/bootfarm-target.
 */
export function makeMachineDisk(
  directory: string,
  script: string,
  blobSize: number,
  busybox = '/bin/busybox',
): MachineDisk {
  const root = path.join(directory, 'root')
  rmSync(root, { recursive: true, force: true })
  makeMachineRoot(root, script, busybox)
  const blob = incompressible(blobSize)
  writeFileSync(path.join(root, 'blob'), blob)
  const image = path.join(directory, 'disk.raw')
  rmSync(image, { force: true })
  const sizeMib = Math.ceil(blobSize / 2 ** 20) + 16
  execFileSync('mke2fs', ['-q', '-t', 'ext4', '-d', root, image, `${sizeMib}M`], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  return { image, blobSum: createHash('md5').update(blob).digest('hex') }
}

/** Makes the root directory of such a system, without the blob. */
export function makeMachineRoot(root: string, script: string, busybox = '/bin/busybox'): void {
  for (const folder of ['bin', 'sbin', 'proc', 'sys', 'dev', 'run'])
    mkdirSync(path.join(root, folder), { recursive: true })
  copyFileSync(busybox, path.join(root, 'bin/busybox'))
  for (const applet of applets) symlinkSync('busybox', path.join(root, 'bin', applet))
  const init = path.join(root, 'sbin/init')
  writeFileSync(init, `#!/bin/sh\nexport PATH=/bin:/sbin:/run/bootfarm\n${script}\npoweroff -f\n`)
  chmodSync(init, 0o755)
}

/** Returns bytes of which no two blocks are equal, the same in every run. */
function incompressible(size: number): Buffer {
  const bytes = Buffer.alloc(size)
  let state = 1
  for (let at = 0; at + 4 <= size; at += 4) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    bytes.writeUInt32LE(state, at)
  }
  return bytes
}
