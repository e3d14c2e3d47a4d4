import type { BootReport } from '@bootfarm/proto/uplink'

/** A boot that became ready, as its edge recorded it: what the model replays. Times in µs since its start. */
export interface RecordedBoot {
  versionId: string
  edgeId: string
  /** What its edge's link carries, in bytes per µs. */
  linkBytesPerUs: number
  startedAtMs: number
  totalUs: number
  /** The device read its disk from here on. */
  streamFromUs: number
  /** A tenth of its READs or more waited for a disk of the edge. */
  isCold: boolean
  /** How long READs that waited for a disk waited, together. */
  coldUs: number
  /** Bytes on the wire in steps of equal length, from the start of the boot. */
  widthUs: number
  bytes: number[]
}

/** The parts of a report that are looked at; the database keeps them under the same names. */
export type ReportedBoot = Pick<BootReport, 'series' | 'readTimes'> & {
  versionId: string
  edgeId: string
  linkBytesPerUs: number
  startedAtMs: number
  isCold: boolean
  phases: { name: string; startUs: number; durationUs?: number | undefined }[]
}

/** A series has 64 steps (UPLINK.md). */
export const stepsMax = 64

/** Null for a boot that did not become ready, and for one from an older edge. */
export function recordedBootOf(boot: ReportedBoot): RecordedBoot | null {
  const { series, phases, versionId, edgeId, linkBytesPerUs, startedAtMs, isCold } = boot
  const ready = phases.find(({ name }) => name === 'ready')
  const stream = phases.find(({ name }) => name === 'stage2')
  if (!ready || !stream || !series?.bytes || ready.startUs <= 0 || series.bytes.length > stepsMax) return null
  return {
    versionId,
    edgeId,
    linkBytesPerUs,
    startedAtMs,
    totalUs: ready.startUs,
    streamFromUs: Math.min(stream.startUs, ready.startUs),
    isCold,
    coldUs: coldUsOf(boot.readTimes),
    widthUs: series.widthUs,
    bytes: series.bytes,
  }
}

function coldUsOf(times: ReportedBoot['readTimes']): number {
  if (!times) return 0
  const parts = times.phases ?? [times]
  return parts.reduce((sum, { cold }) => sum + (cold?.sumUs ?? 0), 0)
}

export const bytesOf = ({ bytes }: RecordedBoot): number => bytes.reduce((sum, one) => sum + one, 0)
