import { bootPhases } from '../boot-phases.ts'
import type { Claim } from './claim.ts'
import { claimsOf } from './claims.ts'
import { type Owner, ownerOf } from './owners.ts'
import type { TracedBoot, ValueSource } from './traced-boot.ts'

export type { Owner, OwnerKind } from './owners.ts'

/** A part of a boot's critical path. */
export interface PathSegment {
  /** µs since the boot's first packet. */
  fromUs: number
  toUs: number
  owner: Owner
  source: ValueSource
  evidence: string
}

/** What an owner has of a boot, over all of its segments. */
export interface OwnerShare {
  owner: Owner
  us: number
  /** Tenths of a percent; those of all owners add up to 1000. */
  share: number
}

/** A boot's critical path: segments without a gap from its first packet to its end. */
export interface BootPath {
  totalUs: number
  segments: PathSegment[]
  /** The largest first. */
  owners: OwnerShare[]
  /** Time whose owner nobody saw and nobody reported: it follows from what was before and after it. */
  inferredUs: number
  unattributedUs: number
  /** From power-on to the first packet, as the firmware's own table (ACPI FPDT) has it; null: not reported. */
  beforeUs: number | null
}

/** No boot lasts longer; a larger number is a broken clock. */
const totalUsMax = 30 * 86_400 * 1_000_000
/** No firmware takes longer before its first packet. */
const beforeUsMax = 600 * 1_000_000
/** Shorter parts are noise of clocks: they belong to what is before them. */
const segmentUsMin = 200

/**
 * Derives a boot's critical path. Each claim covers a span, claims may overlap, contradict each other and lie; the
 * time between two of their ends belongs to the highest of those that cover it. So segments never overlap, and sum to
 * the total, whatever the report says.
 * @param elapsedUs of a boot in progress
 */
export function tracePath(boot: TracedBoot, elapsedUs = boot.totalUs): BootPath {
  const totalUs = bounded(elapsedUs, 0, totalUsMax)
  const segments = merged(cut(claimsOf(boot, totalUs), totalUs))
  const sum = (of: PathSegment[]) => of.reduce((total, { fromUs, toUs }) => total + toUs - fromUs, 0)
  return {
    totalUs,
    segments,
    owners: sharesOf(segments),
    inferredUs: sum(segments.filter(({ source }) => source === 'inferred')),
    unattributedUs: sum(segments.filter(({ owner }) => owner.kind === 'unattributed')),
    beforeUs: beforeOf(boot),
  }
}

/** Whole µs; what is no number is the lower limit. */
function bounded(us: number, min: number, max: number): number {
  return Number.isFinite(us) ? Math.round(Math.min(max, Math.max(min, us))) : us > 0 ? max : min
}

const nobody: Omit<Claim, 'fromUs' | 'toUs'> = {
  rank: -1,
  owner: ownerOf('unattributed'),
  source: 'inferred',
  evidence: 'The report has nothing about this time.',
}

/** Cuts the boot at each end of a claim. */
function cut(claims: Claim[], totalUs: number): PathSegment[] {
  const usable = claims
    .map((claim) => ({ claim, fromUs: bounded(claim.fromUs, 0, totalUs), toUs: bounded(claim.toUs, 0, totalUs) }))
    .filter(({ fromUs, toUs }) => toUs > fromUs)
  const ends = [...new Set([0, totalUs, ...usable.flatMap(({ fromUs, toUs }) => [fromUs, toUs])])].sort((a, b) => a - b)
  return ends.slice(1).map((toUs, index) => {
    const fromUs = ends[index] ?? 0
    const { owner, source, evidence } = usable
      .filter((span) => span.fromUs <= fromUs && span.toUs >= toUs)
      .reduce((best, { claim }) => (claim.rank > best.rank ? claim : best), nobody)
    return { fromUs, toUs, owner, source, evidence }
  })
}

/** Joins neighbours of one owner and source; the shortest parts go to the one before. */
function merged(segments: PathSegment[]): PathSegment[] {
  const joined: PathSegment[] = []
  for (const segment of segments) {
    const last = joined.at(-1)
    const isSame = last?.owner.key === segment.owner.key && last.source === segment.source
    if (last && (isSame || segment.toUs - segment.fromUs < segmentUsMin)) last.toUs = segment.toUs
    else joined.push(segment)
  }
  return joined
}

function sharesOf(segments: PathSegment[]): OwnerShare[] {
  const byKey = new Map<string, OwnerShare>()
  for (const { owner, fromUs, toUs } of segments) {
    const known = byKey.get(owner.key)
    if (known) known.us += toUs - fromUs
    else byKey.set(owner.key, { owner, us: toUs - fromUs, share: 0 })
  }
  const owners = [...byKey.values()].sort((a, b) => b.us - a.us)
  const shares = thousandths(owners.map(({ us }) => us))
  for (const [index, owner] of owners.entries()) owner.share = shares[index] ?? 0
  return owners
}

/** Rounds parts of a whole so that they add up to 1000: the largest remainders are rounded up. */
export function thousandths(parts: number[]): number[] {
  const total = parts.reduce((sum, part) => sum + part, 0)
  if (total <= 0) return parts.map(() => 0)
  const exact = parts.map((part) => (part / total) * 1000)
  const rounded = exact.map(Math.floor)
  const missing = 1000 - rounded.reduce((sum, part) => sum + part, 0)
  const byRemainder = exact
    .map((part, index) => ({ index, remainder: part - Math.floor(part) }))
    .sort((a, b) => b.remainder - a.remainder || a.index - b.index)
  for (const { index } of byRemainder.slice(0, missing)) rounded[index] = (rounded[index] ?? 0) + 1
  return rounded
}

function beforeOf({ guest, phases }: TracedBoot): number | null {
  // An edge that ordered the start saw this time itself.
  if (!guest || phases.some(({ name }) => name === bootPhases[0])) return null
  const starts = guest.steps.filter(({ group }) => group === 'firmware').map(({ startUs }) => startUs)
  const first = Math.min(0, ...starts)
  return first < 0 && first >= -beforeUsMax ? -first : null
}
