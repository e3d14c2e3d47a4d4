import type { Hits, Ratio } from './ratio-interval.ts'
import type { MeasuredBoot } from './read-measured-boots.ts'

/** With fewer boots, figures are shown and nothing is claimed of packets. */
export const bootsMin = 5

/** All boots of one segment with one kind of network card. */
export interface PathFigures {
  siteId: string
  segment: string | null
  card: string | null
  /** The newest first. */
  boots: MeasuredBoot[]
  deviceCount: number
  toDevice: Ratio | null
  fromDevice: Ratio | null
  reordering: Ratio | null
  /** Blocks of TFTP that were sent again, by their size, the largest first. */
  tftp: (Ratio & { blockSize: number })[]
  /** Packets of an average gap; null: nothing was lost within an answer. */
  meanRun: number | null
  /** Medians over boots; `p95UsLow`: three in four boots have a longer p95. */
  rtt: { p50Us: number; p95Us: number; p95UsLow: number } | null
}

export interface Link {
  linkMbit: number | null
  duplex: 'half' | 'full' | null
}

export function linkOf({ network }: MeasuredBoot): Link {
  return { linkMbit: network.linkMbit ?? null, duplex: network.duplex ?? null }
}

/** Packets that arrived at the device and found its buffer full are not lost in the network. */
export function lossToDevice({ network }: MeasuredBoot): Hits {
  const { packets = 0, lost = 0 } = network.toDevice ?? {}
  return { of: packets, hits: Math.max(0, lost - (network.socketDrops ?? 0)) }
}

/** The newest boot of each device. @param boots the newest first */
export function newestOfDevices(boots: MeasuredBoot[]): MeasuredBoot[] {
  return [...new Map(boots.toReversed().map((boot) => [boot.mac, boot])).values()]
}

/** The value that a share of the values does not exceed; 0 without any. */
export function quantileOf(values: number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0
}

export function sum(values: number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
