import type { RecordedBoot } from '../../src/prediction/model/recorded-boot.ts'

const widthUs = 100_000

/** 1 Gb/s. */
export const gigabit = 125

/**
 * A boot of 4 s, as an edge records it: a second without the disk, a kernel of 5 MB as fast as the link carries it,
 * then 20 steps with 0.5 MB each, of which the device needs most for itself.
 */
export function recordedBoot(changes: Partial<RecordedBoot> = {}): RecordedBoot {
  const { linkBytesPerUs = gigabit } = changes
  const kernel = Array.from({ length: 4 }, () => Math.min(1_250_000, linkBytesPerUs * widthUs))
  const bytes = [...Array.from({ length: 10 }, () => 0), ...kernel, ...Array.from({ length: 20 }, () => 500_000)]
  return {
    versionId: 'version',
    edgeId: 'edge',
    linkBytesPerUs,
    startedAtMs: 0,
    totalUs: 4_000_000,
    streamFromUs: 1_400_000,
    isCold: false,
    coldUs: 0,
    widthUs,
    bytes,
    ...changes,
  }
}

/** Boots one after the other, so that each has the link to itself; they differ by a few per cent. */
export function quietBoots(count: number, changes: Partial<RecordedBoot> = {}): RecordedBoot[] {
  return Array.from({ length: count }, (_, index) =>
    recordedBoot({ startedAtMs: index * 60_000, totalUs: 4_000_000 + index * 20_000, ...changes }),
  )
}
