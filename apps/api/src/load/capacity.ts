/**
 * About how many more devices an edge carries: what it has measured with many devices, in proportion. Pure. Docs:
 * docs/decisions/0098-load-of-edges.md.
 */
import type { EdgeCapacity } from './schema.ts'

/** The highest use of a resource between two heartbeats, and how many devices the edge served then. */
interface Peak {
  share: number
  devices: number
}

export interface MeasuredLoad {
  at: Date
  /** Null: not reported. */
  processor: Peak | null
  link: (Peak & { linkMbps: number }) | null
}

/** Above it, queues grow faster than use. */
const limitShare = 0.8
/** With fewer devices most of the use is not theirs. */
const devicesMin = 5
/** Half as many devices as the most say what one of them takes; fewer say more of the machine itself. */
const partOfMost = 0.5
/** A use below this cannot be told from an idle machine's. */
const shareMin = 0.02
/** The estimate goes no further than this times what was measured. */
const factorMax = 3

type Basis = NonNullable<EdgeCapacity['basis']>
interface Carried<P extends Peak> {
  devices: number
  at: Date
  peak: P
}

export function capacityOf(loads: readonly MeasuredLoad[], { from, until }: { from: Date; until: Date }): EdgeCapacity {
  const peaks = loads.flatMap(({ processor, link }) => [processor, link]).filter((peak) => peak !== null)
  if (peaks.length === 0) return unknown('not_reported')
  const most = Math.max(...peaks.map(({ devices }) => devices))
  if (most < devicesMin) return unknown('few_devices')
  const devicesFrom = Math.max(devicesMin, most * partOfMost)
  const processor = least(loads, devicesFrom, (load) => load.processor)
  const link = least(loads, devicesFrom, (load) => load.link)
  const carried = Math.min(processor?.devices ?? Number.POSITIVE_INFINITY, link?.devices ?? Number.POSITIVE_INFINITY)
  const more = Math.max(0, Math.min(carried - most, most * factorMax))
  const isAtLeast = carried - most > most * factorMax
  const basis: Basis = {
    from: from.toISOString(),
    until: until.toISOString(),
    devices: most,
    processor: processor && measured(processor),
    link: link && { ...measured(link), linkMbps: link.peak.linkMbps },
    limitShare,
  }
  const first = (processor?.devices ?? Number.POSITIVE_INFINITY) <= (link?.devices ?? Number.POSITIVE_INFINITY)
  return {
    devices: roughly(more),
    isAtLeast,
    limitedBy: isAtLeast ? null : first ? 'processor' : 'link',
    unknownBecause: null,
    basis,
  }
}

function unknown(unknownBecause: 'not_reported' | 'few_devices'): EdgeCapacity {
  return { devices: null, isAtLeast: false, limitedBy: null, unknownBecause, basis: null }
}

/** The measurement by which the resource carries the fewest devices. */
function least<P extends Peak>(
  loads: readonly MeasuredLoad[],
  devicesFrom: number,
  peakOf: (load: MeasuredLoad) => P | null,
): Carried<P> | null {
  let found: Carried<P> | null = null
  for (const load of loads) {
    const peak = peakOf(load)
    if (!peak || peak.devices < devicesFrom) continue
    const devices = (peak.devices * limitShare) / Math.max(peak.share, shareMin)
    if (!found || devices < found.devices) found = { devices, at: load.at, peak }
  }
  return found
}

function measured({ at, peak: { share, devices } }: Carried<Peak>) {
  return { share, devices, at: at.toISOString() }
}

/** Two digits: the estimate is not better than that. */
function roughly(devices: number): number {
  const whole = Math.floor(devices)
  const unit = 10 ** Math.max(0, String(whole).length - 2)
  return Math.floor(whole / unit) * unit
}
