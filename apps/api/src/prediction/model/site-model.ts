import { fitStorms, type SharingFit } from './fit-storms.ts'
import { mean, median } from './quantiles.ts'
import type { RecordedBoot } from './recorded-boot.ts'
import { findStorms, isAlone } from './recorded-storms.ts'
import { diskBytesOf } from './trace.ts'

/** What is known of a site from boots that it had: the parameters of every prediction. */
export interface SiteModel extends SharingFit {
  /** Boots whose bytes were in the edge's memory and that had its link nearly to themselves, by version. */
  alone: Map<string, RecordedBoot[]>
  /** Boots that had the link nearly to themselves, cold or warm, by version. */
  quietBoots: Map<string, number>
  /** Time that a disk of the edge takes for bytes that nobody has read before, by version. */
  coldUsPerByte: Map<string, number>
  /** How many boots of storms the parameters were fitted to. */
  stormBoots: number
}

/** Fewer boots say too little about how a version boots. */
export const bootsMin = 5
/** More of them say nothing new. */
const aloneMax = 40

/** Pauses now and then, so that the caller can let others work. */
export function* siteModelOf(boots: RecordedBoot[]): Generator<void, SiteModel> {
  const quiet = boots.filter((boot) => isAlone(boot, boots))
  const byVersion = [...Map.groupBy(quiet, ({ versionId }) => versionId)]
  const quietBoots = new Map(byVersion.map(([versionId, all]) => [versionId, all.length]))
  const alone = new Map(
    byVersion.map(([versionId, all]) => [versionId, all.filter(({ isCold }) => !isCold).slice(0, aloneMax)]),
  )
  const storms = findStorms(boots).filter((storm) =>
    storm.every(({ versionId }) => (alone.get(versionId)?.length ?? 0) >= bootsMin),
  )
  const fit = yield* fitStorms(storms, alone)
  return { ...fit, alone, quietBoots, coldUsPerByte: coldTimes(quiet, alone), stormBoots: storms.flat().length }
}

/**
 * By how much cold boots took longer than warm ones of their version, for each byte of the disk. Where no boot was
 * warm, the sum of the reads' waits, which counts those twice that waited at the same time.
 */
function coldTimes(quiet: RecordedBoot[], alone: Map<string, RecordedBoot[]>): Map<string, number> {
  const cold = Map.groupBy(
    quiet.filter(({ isCold }) => isCold),
    ({ versionId }) => versionId,
  )
  return new Map(
    [...cold].map(([versionId, boots]) => {
      const warm = alone.get(versionId) ?? []
      const extraUs =
        warm.length >= bootsMin
          ? mean(boots.map(({ totalUs }) => totalUs)) - median(warm.map(({ totalUs }) => totalUs))
          : mean(boots.map(({ coldUs }) => coldUs))
      return [versionId, Math.max(0, extraUs) / Math.max(1, mean(boots.map(diskBytesOf)))]
    }),
  )
}
