import { countOf, formatBytes } from '../../lib/format-quantity'
import type { Version } from './version-types'

export type BootProfile = Version['atEdges'][number]['bootProfiles'][number]

/** How much is known, and for which hardware. */
export function bootProfileText({ hardware, boots, readAheadBytes, learnedAt }: BootProfile): string {
  const whose = hardware === 'any' ? 'Boot profile' : `Boot profile of ${hardware}`
  const learned = learnedAt === null ? 'from the previous version' : `${countOf(boots, 'boot')} learned`
  return `${whose}: ${learned}, ${formatBytes(readAheadBytes)} read ahead`
}
