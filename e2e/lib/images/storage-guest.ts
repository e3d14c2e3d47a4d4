import { execFileSync, spawnSync } from 'node:child_process'
import { appendFileSync, chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { findMachineKernel } from '../device/machine-kernel.ts'
import { edgeProgram } from '../lab/programs.ts'
import { copyPrograms } from './host-programs.ts'

export interface GuestWork {
  /** Shell commands; the disks are /dev/vda, /dev/vdb and so on. One that fails ends the guest. */
  commands: string
  disks: readonly string[]
  /** Programs of this machine that the guest needs, with their libraries. */
  programs?: readonly string[]
  /** Drivers, as modules or built in. */
  drivers: readonly string[]
}

const runLimitMs = 240_000

/** Why no guest can run here; undefined where one can. */
export function storageGuestMissing(): string | undefined {
  if (!existsSync('/usr/bin/qemu-system-x86_64')) return 'not installed: qemu-system-x86'
  if (!existsSync('/bin/busybox') && !existsSync('/usr/bin/busybox')) return 'not installed: busybox-static'
  return findMachineKernel() ? undefined : 'no kernel for virtual machines'
}

/**
 * Runs commands as root in a virtual machine with these disks: its kernel has the drivers of file systems and of the
 * device mapper, which the host may lack. Nothing is mounted on the host.
 */
export function runInStorageGuest(directory: string, work: GuestWork): void {
  const kernel = findMachineKernel()
  if (!kernel) throw new Error('there is no kernel for virtual machines')
  const initramfs = path.join(directory, 'guest.initramfs')
  const added = work.drivers.flatMap((name) => ['--add-module', name])
  execFileSync(
    edgeProgram,
    [
      'initramfs',
      'build',
      '--kernel-release',
      kernel.release,
      '--modules',
      kernel.modules,
      '--out',
      initramfs,
      ...added,
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  appendOwnFiles(directory, initramfs, work)
  const drives = work.disks.flatMap((disk) => ['-drive', `file=${disk},if=virtio,format=raw,cache=unsafe`])
  const machine = ['-accel', 'tcg', '-cpu', 'max', '-m', '384', '-nodefaults', '-no-reboot', '-display', 'none']
  const { stdout, stderr } = spawnSync(
    'qemu-system-x86_64',
    // biome-ignore format: an option a line
    [
      ...machine, '-serial', 'stdio', '-kernel', kernel.vmlinuz, '-initrd', initramfs,
      '-append', 'console=ttyS0 quiet panic=-1', ...drives,
    ],
    { encoding: 'utf8', timeout: runLimitMs },
  )
  rmSync(initramfs)
  if (!stdout.includes('guest: done')) throw new Error(`the guest failed:\n${stdout.slice(-4000)}\n${stderr}`)
}

/** The kernel unpacks a second archive over the first one, beginning at a multiple of four bytes. */
function appendOwnFiles(directory: string, initramfs: string, work: GuestWork): void {
  const { commands, programs = [], drivers } = work
  const tree = path.join(directory, 'guest.tree')
  rmSync(tree, { recursive: true, force: true })
  mkdirSync(tree, { recursive: true })
  copyPrograms(tree, programs)
  writeFileSync(path.join(tree, 'init'), `${guestStart(drivers)}${commands}\necho guest: done\npoweroff -f\n`)
  chmodSync(path.join(tree, 'init'), 0o755)
  const archive = execFileSync('busybox', ['cpio', '-o', '-H', 'newc'], {
    cwd: tree,
    input: execFileSync('find', ['.'], { cwd: tree }),
    stdio: ['pipe', 'pipe', 'ignore'],
    maxBuffer: 256 << 20,
  })
  appendFileSync(initramfs, Buffer.alloc((4 - (readFileSync(initramfs).length % 4)) % 4))
  appendFileSync(initramfs, archive)
  rmSync(tree, { recursive: true })
}

/** Built-in drivers have no module to load. */
const guestStart = (drivers: readonly string[]) => `#!/bin/sh
export PATH=/bootfarm/bin:/bin:/sbin:/usr/bin:/usr/sbin
trap 'poweroff -f' EXIT
set -ex
mkdir -p /proc /sys /dev /run /mnt /from
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
for driver in virtio_pci virtio_blk ext4 ${drivers.join(' ')}; do modprobe $driver || :; done
`
