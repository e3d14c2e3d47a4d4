import { copyFileSync, mkdirSync } from 'node:fs'
import path from 'node:path'
import { findArm64 } from '../../../scripts/lib/machines/arm64.mjs'
import { findMachineKernel, type MachineKernel } from './machine-kernel.ts'

/** What machines of one kind of processor run before and after their firmware. */
export interface MachinePlatform {
  kernel: MachineKernel
  busybox: string
  /** `bootfarm-target` for them; undefined: the one beside the edge. */
  target: string | undefined
  /** The kernel's name of the serial port. */
  serial: string
  /** Files directly in the edge's directory of boot programs. */
  bootPrograms: string[]
  /** Makes sets in the directory of boot programs. */
  makeSets?: (directory: string) => void
}

/** What `npm test` fetched and built; undefined where it could not. */
export function x64Platform(): MachinePlatform | undefined {
  const kernel = findMachineKernel()
  if (!kernel) return undefined
  const bootPrograms = ['undionly.kpxe', 'snponly.efi', 'ipxe.efi'].map((name) => `/usr/lib/ipxe/${name}`)
  return { kernel, busybox: '/bin/busybox', target: undefined, serial: 'ttyS0', bootPrograms }
}

/** What `npm run test:all` fetched and built; undefined where it could not. Debian has no iPXE for it: GRUB is its boot program. */
export function arm64Platform(): MachinePlatform | undefined {
  const found = findArm64()
  if (!found) return undefined
  const bootPrograms = [path.join(found.grub, 'grubnetaa64.efi.signed')]
  return { ...found, serial: 'ttyAMA0', bootPrograms }
}

/** A folder with the boot programs alone. */
export function publish(bootPrograms: string[], folder: string): void {
  mkdirSync(folder)
  for (const file of bootPrograms) copyFileSync(file, path.join(folder, path.basename(file)))
}
