import type { TracedStep } from './traced-boot.ts'

/**
 * Walks back from the end of the boot: from each instant to the unit that had finished last, and from there to where
 * it began. What ran beside it and finished earlier held nothing up. At most as many as there are units.
 */
export function unitChain(steps: readonly TracedStep[], endUs: number): TracedStep[] {
  const units = steps.filter(({ group, durationUs }) => group === 'unit' && durationUs > 0)
  const chain: TracedStep[] = []
  let atUs = endUs
  for (const _ of units) {
    const last = units
      .filter((unit) => endOf(unit) <= atUs && !chain.includes(unit))
      .reduce<TracedStep | null>((best, unit) => (best && endOf(best) >= endOf(unit) ? best : unit), null)
    if (!last) break
    chain.push(last)
    atUs = last.startUs
  }
  return chain.reverse()
}

function endOf({ startUs, durationUs }: TracedStep): number {
  return startUs + durationUs
}
