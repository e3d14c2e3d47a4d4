import type { RecordedBoot } from './recorded-boot.ts'

/**
 * A boot as steps that a storm can stretch. In each one the device's own time and the transfer of the step's bytes
 * begin together; `besideUs` passes beside the transfer, `afterUs` when both are over.
 */
export interface Trace {
  steps: number
  besideUs: Float64Array
  afterUs: Float64Array
  /** On the wire. */
  bytes: Float64Array
  /** Bytes of the disk that were read before the step, and in it. */
  diskFrom: Float64Array
  diskBytes: Float64Array
  /** How long the boot took. */
  totalUs: number
}

interface Sharing {
  /** The part of a link's speed that bytes of boots reach. */
  reach: number
  /** The part of the device's own time, 0 to 1, that passes while it waits for bytes of its disk. */
  overlap: number
}

/**
 * Cuts a boot that had the link to itself into steps. Replayed alone over the same link, the trace takes as long as
 * the boot took: a step of length w, whose bytes took s, has an own time t for which max(o t, s) + (1 - o) t = w.
 */
export function traceOf(boot: RecordedBoot, { reach, overlap }: Sharing): Trace {
  const count = Math.max(1, Math.min(boot.bytes.length, Math.ceil(boot.totalUs / boot.widthUs)))
  const numbers = () => new Float64Array(count)
  const trace = { besideUs: numbers(), afterUs: numbers(), bytes: numbers(), diskFrom: numbers(), diskBytes: numbers() }
  let diskAt = 0
  for (let index = 0; index < count; index += 1) {
    const fromUs = index * boot.widthUs
    // The last step lasts until ready: a series ends with the last packet.
    const untilUs = index === count - 1 ? boot.totalUs : Math.min(boot.totalUs, fromUs + boot.widthUs)
    const lengthUs = Math.max(0, untilUs - fromUs)
    const bytes = boot.bytes[index] ?? 0
    const streamed = lengthUs > 0 ? shareFrom(boot.streamFromUs, fromUs, untilUs) : 0
    const beside = overlap * streamed
    const transferUs = bytes / (reach * boot.linkBytesPerUs)
    const ownUs =
      beside * lengthUs >= transferUs ? lengthUs : Math.max(0, (lengthUs - transferUs) / Math.max(1 - beside, 0.01))
    trace.besideUs[index] = beside * ownUs
    trace.afterUs[index] = (1 - beside) * ownUs
    trace.bytes[index] = bytes
    trace.diskFrom[index] = diskAt
    trace.diskBytes[index] = bytes * streamed
    diskAt += bytes * streamed
  }
  return { ...trace, steps: count, totalUs: boot.totalUs }
}

/** The part of a span, 0 to 1, that lies behind an instant. */
function shareFrom(instant: number, from: number, until: number): number {
  return Math.max(0, Math.min(1, (until - instant) / (until - from)))
}

/** What a boot read of its disk, as bytes on the wire. */
export function diskBytesOf(boot: RecordedBoot): number {
  return traceOf(boot, { reach: 1, overlap: 0 }).diskBytes.reduce((sum, bytes) => sum + bytes, 0)
}
