/** DHCP option 93 (RFC 4578, and IANA's registry of processor architecture types). */
export const clientArchitectures: Record<number, string> = {
  0: 'x86 BIOS',
  6: 'x86 UEFI',
  7: 'x86-64 UEFI',
  9: 'x86-64 UEFI',
  10: 'arm32 UEFI',
  11: 'arm64 UEFI',
  15: 'x86 UEFI, HTTP boot',
  16: 'x86-64 UEFI, HTTP boot',
  19: 'arm64 UEFI, HTTP boot',
  20: 'x86 BIOS, HTTP boot',
}

/** In words, with the number that the device sent. */
export function architecture(clientArch: number | null): string | null {
  if (clientArch === null) return null
  return `${clientArchitectures[clientArch] ?? 'unknown'} (type ${clientArch})`
}
