import { findFaults, type PathFault } from './find-faults.ts'
import { type Link, linkOf, lossToDevice, newestOfDevices, type PathFigures, quantileOf, sum } from './path-figures.ts'
import { ratioOf } from './ratio-interval.ts'
import type { MeasuredBoot } from './read-measured-boots.ts'

export interface NetworkPath extends PathFigures {
  links: LinkCount[]
  faults: PathFault[]
}

export interface LinkCount extends Link {
  deviceCount: number
}

/** Groups boots by segment and card, the worst first. @param boots the newest first */
export function summarizePaths(boots: MeasuredBoot[]): NetworkPath[] {
  const usual = usualLinks(boots)
  return [...groupBy(boots, ({ siteId, segment, card }) => JSON.stringify([siteId, segment, card])).values()]
    .map((some) => pathOf(some, usual))
    .sort(worstFirst)
}

function pathOf(boots: MeasuredBoot[], usual: ReadonlyMap<string, Link>): NetworkPath {
  const [first] = boots
  if (!first) throw new Error('a group has a boot')
  const runs = sum(boots.map(({ network }) => network.toDevice?.runs ?? 0))
  const runPackets = sum(boots.map(({ network }) => network.toDevice?.runPackets ?? 0))
  const figures: PathFigures = {
    siteId: first.siteId,
    segment: first.segment,
    card: first.card,
    boots,
    deviceCount: new Set(boots.map(({ mac }) => mac)).size,
    toDevice: ratioOf(boots.map(lossToDevice)),
    fromDevice: ratioOf(boots.map(({ network }) => hitsOf(network.fromDevice?.packets, network.fromDevice?.lost))),
    reordering: ratioOf(boots.map(({ network }) => hitsOf(network.order?.packets, network.order?.late))),
    tftp: tftpOf(boots),
    meanRun: runs > 0 ? runPackets / runs : null,
    rtt: rttOf(boots),
  }
  const faults = findFaults(figures, usual.get(segmentKey(first)) ?? null)
  return Object.assign(figures, { links: linksOf(boots), faults })
}

function hitsOf(packets = 0, hits = 0) {
  return { of: packets, hits }
}

function tftpOf(boots: MeasuredBoot[]): PathFigures['tftp'] {
  const sent = boots.flatMap(({ network }) => network.tftp ?? [])
  return [...groupBy(sent, ({ blockSize }) => String(blockSize)).values()]
    .flatMap((some) => {
      const ratio = ratioOf(some.map(({ blocks, again }) => hitsOf(blocks, again)))
      const blockSize = some[0]?.blockSize
      return ratio && blockSize !== undefined ? [Object.assign(ratio, { blockSize })] : []
    })
    .sort((a, b) => b.blockSize - a.blockSize)
}

function rttOf(boots: MeasuredBoot[]): PathFigures['rtt'] {
  const measured = boots.flatMap(({ network }) => network.rtt ?? [])
  if (measured.length === 0) return null
  const p95s = measured.map(({ p95Us }) => p95Us)
  return {
    p50Us: quantileOf(
      measured.map(({ p50Us }) => p50Us),
      0.5,
    ),
    p95Us: quantileOf(p95s, 0.5),
    p95UsLow: quantileOf(p95s, 0.25),
  }
}

function linksOf(boots: MeasuredBoot[]): LinkCount[] {
  const known = newestOfDevices(boots).filter((boot) => linkOf(boot).linkMbit !== null || linkOf(boot).duplex !== null)
  return [...groupBy(known, (boot) => JSON.stringify(linkOf(boot))).values()]
    .flatMap(([first, ...others]) => (first ? [{ ...linkOf(first), deviceCount: 1 + others.length }] : []))
    .sort((a, b) => b.deviceCount - a.deviceCount || (b.linkMbit ?? 0) - (a.linkMbit ?? 0))
}

const segmentKey = ({ siteId, segment }: MeasuredBoot) => JSON.stringify([siteId, segment])
/** So many devices, and more than half of a segment, make a link usual there. */
const usualMin = 3

function usualLinks(boots: MeasuredBoot[]): Map<string, Link> {
  const found = new Map<string, Link>()
  for (const [key, some] of groupBy(boots, segmentKey)) {
    const links = linksOf(some)
    const [first] = links
    const devices = sum(links.map(({ deviceCount }) => deviceCount))
    if (first && first.deviceCount >= usualMin && 2 * first.deviceCount > devices) found.set(key, first)
  }
  return found
}

/** Faults before notices, more of them before fewer, then by the loss that is certain. */
function worstFirst(a: NetworkPath, b: NetworkPath): number {
  return rankOf(b) - rankOf(a) || certainLoss(b) - certainLoss(a) || b.boots.length - a.boots.length
}

function rankOf({ faults }: NetworkPath): number {
  return sum(faults.map(({ severity }) => (severity === 'fault' ? 100 : 1)))
}

function certainLoss({ toDevice, fromDevice }: NetworkPath): number {
  return Math.max(toDevice?.low ?? 0, fromDevice?.low ?? 0)
}

function groupBy<T>(values: T[], keyOf: (value: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const value of values) {
    const group = groups.get(keyOf(value))
    if (group) group.push(value)
    else groups.set(keyOf(value), [value])
  }
  return groups
}
