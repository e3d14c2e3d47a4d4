import type { TracedStep } from './traced-boot.ts'

interface Chain {
  units: TracedStep[]
  us: number
}

/**
 * Chooses the units that, one after the other, cover most of the boot until `endUs`: what ran beside them was covered,
 * and held nothing up. Units that were still starting then are not among them. In order of start.
 */
export function unitChain(steps: readonly TracedStep[], endUs: number): TracedStep[] {
  const units = steps
    .filter((unit) => unit.group === 'unit' && unit.durationUs > 0 && endOf(unit) <= endUs)
    .sort((a, b) => endOf(a) - endOf(b))
  /** The best chain that ends with this unit, for each. */
  const chains: Chain[] = []
  for (const unit of units) {
    const before = chains.filter((chain) => endOf(chain.units.at(-1)) <= unit.startUs)
    const longest = longestOf(before)
    chains.push({ units: [...longest.units, unit], us: longest.us + unit.durationUs })
  }
  return longestOf(chains).units
}

function longestOf(chains: Chain[]): Chain {
  return chains.reduce((best, chain) => (chain.us > best.us ? chain : best), { units: [], us: 0 })
}

function endOf(unit: TracedStep | undefined): number {
  return unit ? unit.startUs + unit.durationUs : 0
}
