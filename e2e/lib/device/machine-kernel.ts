import { execFileSync } from 'node:child_process'
import { findKernel } from '../../../scripts/lib/machines/kernel.mjs'
import { edgeProgram } from '../lab/programs.ts'

export interface MachineKernel {
  release: string
  vmlinuz: string
  /** The root directory of its modules. */
  modules: string
}

/** Finds the kernel that `npm test` fetched; undefined where it could not. */
export function findMachineKernel(): MachineKernel | undefined {
  return findKernel('virtual')
}

/** The content of an initramfs besides the edge's own files. */
export interface InitramfsParts {
  kernel: MachineKernel
  busybox?: string
  /** By default the one beside the edge. */
  target?: string | undefined
}

/** Builds the initramfs as a user would. */
export function buildInitramfs({ kernel, busybox, target }: InitramfsParts, out: string): void {
  const options = [
    '--kernel-release',
    kernel.release,
    '--modules',
    kernel.modules,
    '--out',
    out,
    ...(busybox ? ['--busybox', busybox] : []),
    ...(target ? ['--target', target] : []),
  ]
  execFileSync(edgeProgram, ['initramfs', 'build', ...options], { stdio: ['ignore', 'ignore', 'pipe'] })
}

/** Why machines cannot boot here; undefined where they can. `others`: packages that only some tests need. */
export function machinesMissing(others: string[] = []): string | undefined {
  if (process.getuid?.() !== 0) return 'network namespaces need root'
  const missing = (process.env.BOOTFARM_MISSING_PACKAGES ?? '').split(' ')
  const wanted = [...machinePackages, ...others].filter((name) => missing.includes(name))
  if (wanted.length > 0) return `not installed: ${wanted.join(', ')}`
  if (findMachineKernel()) return undefined
  return `no kernel for virtual machines: ${process.env.BOOTFARM_NO_KERNEL ?? 'npm test fetches one'}`
}

const machinePackages = [
  'iproute2',
  'nftables',
  'qemu-system-x86',
  'ovmf',
  'ipxe',
  'ipxe-qemu',
  'dnsmasq-base',
  'busybox-static',
  'e2fsprogs',
  'kmod',
  'tcpdump',
]

/** For boot media, and to inspect them. */
export const mediaPackages = ['isolinux', 'syslinux-common', 'genisoimage', 'dosfstools']
/** For a disk with its own boot loader. */
export const wholeDiskPackages = ['syslinux-common', 'syslinux', 'syslinux-efi', 'mtools', 'dosfstools']
