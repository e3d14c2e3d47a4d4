import { type DurationHistogram, type ReadTimesReport, readPhases } from '@bootfarm/proto/uplink'
import { z } from 'zod'
import { count } from '../rules/scalars.ts'

/** One part of the path of the reads. Median and p95 are estimated within powers of two. */
const readTimes = z.object({
  count: count.describe('Number of measurements.'),
  medianUs: count,
  p95Us: count,
  maxUs: count,
  sumUs: count,
})
type ReadTimes = z.infer<typeof readTimes>

/** The differences of medians or of 95th percentiles are not those of any reads: p95 could be below the median. */
const networkTimes = readTimes.extend({
  medianUs: count.nullable(),
  p95Us: count.nullable(),
  maxUs: count.nullable(),
})

/** Read times of a phase or of the whole boot. Each is null if nothing was measured. */
const readTimesOfPart = z.object({
  reads: count.describe(
    'READs that the edge answered; if it measured none, those that the device reports as received.',
  ),
  bytes: count.nullable().describe('Bytes that they requested; null from older edges.'),
  storage: readTimes.nullable().describe('From a READ at the edge until its bytes were in memory.'),
  warm: readTimes.nullable().describe('Those of them whose bytes were in memory already.'),
  cold: readTimes.nullable().describe('Those of them that waited for a disk.'),
  coldReads: count.describe('Number of reads that waited for a disk.'),
  send: readTimes.nullable().describe("From there until the edge's kernel had the last packet."),
  wire: networkTimes
    .nullable()
    .describe(
      "The network, and what was lost on it: for each READ the device's time without the edge's. From older devices and edges only the sum is known, as the remainder of `fetch`; median, p95 and longest are null then.",
    ),
  fetch: readTimes
    .nullable()
    .describe('Measured by the device, from its READ to the last byte: storage, send and wire together.'),
  late: readTimes
    .nullable()
    .describe(
      'By how much reads were later whose fragments the edge sent again: from the last packet of the answer to the last one of its last retransmission. It is contained in `wire`. Null: nothing was sent again, or the edge is older.',
    ),
  turnaround: readTimes.nullable().describe("The machine's own: from an answer to its next read."),
  wait: readTimes
    .nullable()
    .describe('How long its system waited for a read; shorter than the others if it was read ahead.'),
})

export const readTimesView = readTimesOfPart.extend({
  phases: z
    .array(readTimesOfPart.extend({ name: z.enum(readPhases) }))
    .describe(
      'The same for the initramfs, until it handed over to the system, and for the system from there until the boot was over; empty where the device does not tell them apart, and from older devices and edges.',
    ),
})
type ReadTimesView = z.infer<typeof readTimesView>

type PartReport = Omit<ReadTimesReport, 'phases'>

/** The kept part of a report: of phases without their sum. */
export function keptReadTimes({ phases, ...whole }: ReadTimesReport): ReadTimesReport {
  return phases ? { phases } : whole
}

/** Below this share of READs that wait for a disk, a disk is not what a boot waits for. */
const coldShareMin = 0.1

/** Whether the edge had to read the boot's blocks from a disk; null: nothing was measured. */
export function isColdBoot(report: ReadTimesReport | undefined): boolean | null {
  if (!report) return null
  const { storage, coldReads } = readTimesViewOf(report)
  return storage ? coldReads >= storage.count * coldShareMin : null
}

/** Takes a whole report, or its stored part. */
export function readTimesViewOf({ phases, ...whole }: ReadTimesReport): ReadTimesView {
  return {
    ...viewOf(...(phases ?? [whole])),
    phases: phases?.map((phase) => ({ name: phase.name, ...viewOf(phase) })) ?? [],
  }
}

function viewOf(...parts: PartReport[]): z.infer<typeof readTimesOfPart> {
  const of = (...names: Exclude<keyof PartReport, 'bytes'>[]) =>
    timesOf(...parts.flatMap((part) => names.flatMap((name) => part[name] ?? [])))
  const [storage, send, fetch, cold] = [of('warm', 'cold'), of('send'), of('fetch'), of('cold')]
  return {
    reads: storage?.count ?? fetch?.count ?? 0,
    bytes: parts.some(({ bytes }) => bytes === undefined)
      ? null
      : Math.min(
          Number.MAX_SAFE_INTEGER,
          parts.reduce((sum, { bytes = 0 }) => sum + bytes, 0),
        ),
    storage,
    warm: of('warm'),
    cold,
    coldReads: cold?.count ?? 0,
    send,
    wire: of('wire') ?? remainderOf(fetch, storage, send),
    fetch,
    late: of('late'),
    turnaround: of('turnaround'),
    wait: of('wait'),
  }
}

/** Where nobody measured the network's part of each read, it is what is left of all. */
function remainderOf(
  fetch: ReadTimes | null,
  storage: ReadTimes | null,
  send: ReadTimes | null,
): z.infer<typeof networkTimes> | null {
  if (!fetch || !storage || !send) return null
  // The edge may have counted READs whose answer the device has not got, or the other way round.
  const atTheEdge = (storage.sumUs / storage.count + send.sumUs / send.count) * fetch.count
  return {
    count: fetch.count,
    medianUs: null,
    p95Us: null,
    maxUs: null,
    sumUs: Math.max(0, Math.round(fetch.sumUs - atTheEdge)),
  }
}

function timesOf(...histograms: DurationHistogram[]): ReadTimes | null {
  const total = histograms.reduce((sum, one) => sum + countOf(one), 0)
  if (total === 0) return null
  const maxUs = Math.max(...histograms.map((one) => one.maxUs))
  const quantile = (share: number) => Math.min(maxUs, quantileUs(histograms, total * share))
  return {
    count: total,
    medianUs: quantile(0.5),
    p95Us: quantile(0.95),
    maxUs,
    sumUs: Math.min(
      Number.MAX_SAFE_INTEGER,
      histograms.reduce((sum, one) => sum + one.sumUs, 0),
    ),
  }
}

const countOf = ({ counts }: DurationHistogram) => counts.reduce((sum, each) => sum + each, 0)

/** Returns the `rank`-th shortest, as if the values of a bucket were spread evenly in it. */
function quantileUs(histograms: DurationHistogram[], rank: number): number {
  let before = 0
  for (let bucket = 0; ; bucket += 1) {
    const here = histograms.reduce((sum, one) => sum + (one.counts[bucket - one.firstBucket] ?? 0), 0)
    if (before + here >= rank) {
      const begin = bucket === 0 ? 0 : 2 ** (bucket - 1)
      return Math.round(begin + ((2 ** bucket - begin) * (rank - before)) / here)
    }
    before += here
  }
}
