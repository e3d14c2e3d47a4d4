import type { OwnerKind } from '@bootfarm/proto/boot-path'

/** Owners have the colours of the phases and of the OS boot steps that they are part of. */
const colours: Record<OwnerKind, string> = {
  firmware: 'var(--phase-firmware)',
  dhcp: 'var(--phase-dhcp)',
  nbp: 'var(--phase-nbp)',
  loader: 'var(--phase-loader)',
  stage1: 'var(--phase-stage1)',
  kernel: 'var(--step-kernel)',
  initramfs: 'var(--step-initramfs)',
  system: 'var(--step-system)',
  unit: 'var(--step-unit)',
  stream: 'var(--phase-stage2)',
  edge: 'var(--failed)',
  unattributed: 'var(--line-strong)',
}

export function ownerColour(kind: OwnerKind): string {
  return colours[kind]
}
