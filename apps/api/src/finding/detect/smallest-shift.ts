import { bootsBeforeMin, slowerNeeded } from './class-watch.ts'

/** 95 of 100 normal values are above -1.645. */
const mostly = 1.645

/**
 * Returns the smallest shift of a class that is found with the `affected`-th boot in 95 of 100 cases, as a factor of
 * the boot time (1.1: 10 % slower); null if the class has too few boots. The scores of shifted boots are about the
 * shift in spreads, less what shifted boots among those before them hide.
 * @param isKnown of a segment that was there before
 */
export function smallestShift(
  { times, spread, tolerance }: { times: readonly number[]; spread: number; tolerance: number },
  { isKnown, affected }: { isKnown: boolean; affected: number },
): number | null {
  if (times.length < bootsBeforeMin) return null
  let visible = 0
  for (let index = 0; index < affected; index += 1) visible += times.length / (times.length + index)
  const needed = slowerNeeded(isKnown) + mostly * Math.sqrt(affected)
  return Math.exp(((needed / visible) * spread + tolerance) / 10_000)
}
