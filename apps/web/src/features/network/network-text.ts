import { countOf, formatDuration } from '../../lib/format-quantity.ts'
import type { RouterOutputs } from '../../lib/trpc'

export type NetworkReport = RouterOutputs['network']['report']
export type NetworkPath = NetworkReport['paths'][number]
export type PathFault = NetworkPath['faults'][number]

/** A share of packets: two digits, as far as they say something. */
export function shareText(share: number): string {
  const percent = 100 * share
  if (percent === 0) return '0\u00a0%'
  return percent < 0.001 ? '< 0.001\u00a0%' : `${Number(percent.toPrecision(2))}\u00a0%`
}

export function linkText({ linkMbit, duplex }: { linkMbit: number | null; duplex: 'half' | 'full' | null }): string {
  if (linkMbit === null) return duplex ? `${duplex} duplex` : 'unknown'
  const speed = linkMbit >= 1000 ? `${linkMbit / 1000}\u00a0Gbit/s` : `${linkMbit}\u00a0Mbit/s`
  return duplex === 'half' ? `${speed} half duplex` : speed
}

/** The most frequent link of a path, and how many devices have another one. */
export function linksText({ links }: NetworkPath): string | null {
  const [first, ...others] = links
  if (!first) return null
  const count = others.reduce((total, { deviceCount }) => total + deviceCount, 0)
  return count === 0 ? linkText(first) : `${linkText(first)}, ${countOf(count, 'other')}`
}

export function rttText({ rtt }: Pick<NetworkPath, 'rtt'>): string | null {
  return rtt && `${formatDuration(rtt.p50Us)} / ${formatDuration(rtt.p95Us)}`
}

export function summaryOf({ bootCount, isCut, paths }: NetworkReport): string {
  const faults = paths.filter((path) => path.faults.some(({ severity }) => severity === 'fault')).length
  const boots = `${isCut ? 'The newest ' : ''}${countOf(bootCount, 'boot')}`
  const found = faults === 0 ? 'nothing to check' : `${faults} of ${countOf(paths.length, 'path')} to check`
  return `${boots} measured their network: ${found}.`
}

export const pathKey = ({ siteId, segment, card }: NetworkPath) => JSON.stringify([siteId, segment, card])

export function pathName({ segment, card }: NetworkPath): string {
  return `${segment ?? 'No address'}, ${card ?? 'unknown card'}`
}
