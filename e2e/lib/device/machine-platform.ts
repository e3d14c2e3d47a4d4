import { copyFileSync, mkdirSync } from 'node:fs'
import path from 'node:path'
import { findArm64 } from '../../../scripts/lib/machines/arm64.mjs'
import { findMachineKernel, type MachineKernel } from './machine-kernel.ts'

/** The programs that machines with one kind of processor run before and after their firmware. */
export interface MachinePlatform {
  kernel: MachineKernel
  busybox: string
  /** Their `bootfarm-target`; by default the one beside the edge. */
  target: string | undefined
  /** The kernel's name for the serial port. */
  serial: string
  /** Files at the top of the edge's directory of boot programs. */
  bootPrograms: string[]
  /** Creates sets in the directory of boot programs. */
  makeSets?: (directory: string) => void
}

/** Finds what `npm test` fetched and built; undefined where it could not. */
export function x64Platform(): MachinePlatform | undefined {
  const kernel = findMachineKernel()
  if (!kernel) return undefined
  const bootPrograms = ['undionly.kpxe', 'snponly.efi', 'ipxe.efi'].map((name) => `/usr/lib/ipxe/${name}`)
  return { kernel, busybox: '/bin/busybox', target: undefined, serial: 'ttyS0', bootPrograms }
}

/**
 * Finds what `npm run test:all` fetched and built; undefined where it could not. Debian has no iPXE for arm64, so GRUB
 * is its boot program.
 */
export function arm64Platform(): MachinePlatform | undefined {
  const found = findArm64()
  if (!found) return undefined
  const bootPrograms = [path.join(found.grub, 'grubnetaa64.efi.signed')]
  return { ...found, serial: 'ttyAMA0', bootPrograms }
}

/** Makes a folder with the boot programs alone. */
export function publish(bootPrograms: string[], folder: string): void {
  mkdirSync(folder)
  for (const file of bootPrograms) copyFileSync(file, path.join(folder, path.basename(file)))
}
