import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'

/** Why libvhdi cannot read an image here; undefined: it can. */
export const vhdiMissing = existsSync('/usr/bin/vhdimount')
  ? existsSync('/dev/fuse') && process.getuid?.() === 0
    ? undefined
    : 'no root or no FUSE'
  : 'not installed: libvhdi-utils'

// The file with the highest number is the disk of the image, those before it are its parents'.
const script = `
  vhdimount "$1" "$2" >&2 || exit 1
  sha256sum "$2"/* | tail -n 1
  umount "$2"`

/** Returns the SHA-256 of the disk that libvhdi reads in a VHD or VHDX and its parents; at most 9 files. */
export function digestByLibvhdi(image: string): string {
  const mountPoint = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-vhdi-'))
  try {
    // Mounted in a namespace, which ends with the script.
    const args = ['--mount', '--propagation', 'private', 'sh', '-c', script, 'sh', image, mountPoint]
    return execFileSync('unshare', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).slice(0, 64)
  } finally {
    rmSync(mountPoint, { recursive: true, force: true })
  }
}
