import { countOf, formatBytes } from '../../lib/format-quantity'
import type { BootDetail } from './boot-types'

/** The result of reading ahead in a boot, in one line; null if unknown. */
export function readAheadText(readAhead: BootDetail['readAhead']): string | null {
  if (readAhead === null) return null
  const { hadProfile, askedBytes, usedBytes, waitedReads } = readAhead
  const waited = `${countOf(waitedReads, 'on-demand read')}`
  if (askedBytes === 0)
    return hadProfile ? `unused (profile available); ${waited}` : `unused (no boot profile yet); ${waited}`
  // Rounded down: 100 % is all of it.
  const percent = Math.floor((usedBytes * 100) / askedBytes)
  return `${formatBytes(askedBytes)} read, ${formatBytes(usedBytes)} used (${percent}\u00a0%), ${waited}`
}
