/** Firmware and kernel keep a part of a machine's memory, which differs from machine to machine: sizes are rounded. */

const mibOfGib = 1024

export function memoryGibOf(mib: number): number {
  return Math.max(1, Math.round(mib / mibOfGib))
}

/** The sizes in MiB that `memoryGibOf` rounds to these. */
export function memoryRange(gib: number): { gte: number; lte: number } {
  const half = mibOfGib / 2
  return { gte: gib === 1 ? 0 : gib * mibOfGib - half, lte: gib * mibOfGib + half - 1 }
}
