import type { Owner } from './owners.ts'
import type { ValueSource } from './traced-boot.ts'

/** Says that a span of a boot belongs to an owner. Claims may overlap and lie: `tracePath` decides between them. */
export interface Claim {
  fromUs: number
  toUs: number
  /** Where claims overlap, the highest rank counts: what is known more exactly. */
  rank: number
  owner: Owner
  source: ValueSource
  evidence: string
}

/** From what follows by elimination to what somebody said about this very moment. */
export const ranks = {
  between: 0,
  phase: 10,
  offers: 20,
  loader: 20,
  loaderStep: 25,
  gap: 30,
  pause: 40,
  handOver: 50,
  step: 60,
  unit: 70,
  failOver: 80,
}

/** Cuts off what lies outside of a span. */
export function clip(claim: Claim, { fromUs, toUs }: { fromUs: number; toUs: number }): Claim {
  claim.fromUs = Math.max(claim.fromUs, fromUs)
  claim.toUs = Math.min(claim.toUs, toUs)
  return claim
}

/** A point on the boot's axis of time, to the millisecond. */
export function at(us: number): string {
  return `+${seconds(us)}`
}

export function seconds(us: number): string {
  return `${(us / 1_000_000).toFixed(3)} s`
}
