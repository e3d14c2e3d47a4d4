import { z } from 'zod'

/** The kind of a machine's firmware, as far as rules distinguish it. */
const architectures = ['bios', 'x86_uefi', 'x64_uefi', 'arm32_uefi', 'arm64_uefi'] as const
export const architecture = z.enum(architectures)
export type Architecture = z.infer<typeof architecture>

/**
 * By DHCP option 93 (RFC 4578 and IANA's list of processor architecture types). Firmware of x64 machines sends 7 or 9.
 */
const architectureOfType: Record<number, Architecture> = {
  0: 'bios',
  6: 'x86_uefi',
  7: 'x64_uefi',
  9: 'x64_uefi',
  10: 'arm32_uefi',
  11: 'arm64_uefi',
  15: 'x86_uefi',
  16: 'x64_uefi',
  17: 'x64_uefi',
  18: 'arm32_uefi',
  19: 'arm64_uefi',
  20: 'bios',
}

/** Null where the device says none, or one that boots nothing here. */
export function architectureOf(clientArch: number | null): Architecture | null {
  return clientArch === null ? null : (architectureOfType[clientArch] ?? null)
}
