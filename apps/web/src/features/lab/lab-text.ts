import { formatDuration } from '../../lib/format-quantity.ts'
import type { Cell } from './experiment-tags'

type Difference = NonNullable<Cell['difference']>

export function signedDuration(us: number): string {
  if (Math.round(us) === 0) return '0\u00a0s'
  return `${us < 0 ? '−' : '+'}${formatDuration(Math.abs(us))}`
}

export function intervalText({ lowUs, highUs }: Difference): string {
  return `${signedDuration(lowUs)} to ${signedDuration(highUs)}`
}

/** The result of a cell in a word or two. */
export function verdictOf(
  cell: Pick<Cell, 'difference' | 'failsMore' | 'pairCount'>,
  pairsNeeded: number,
): { text: string; tone: 'plain' | 'ready' | 'failed' } {
  if (cell.failsMore) return { text: 'fails more', tone: 'failed' }
  if (!cell.difference) return { text: `${cell.pairCount} of ${pairsNeeded} pairs`, tone: 'plain' }
  if (!cell.difference.isClear) return { text: 'may be chance', tone: 'plain' }
  return cell.difference.us > 0 ? { text: 'slower', tone: 'failed' } : { text: 'quicker', tone: 'ready' }
}

/** How likely chance alone is, for people. */
export function chanceText(chance: number): string {
  if (chance >= 1) return 'as likely as not by chance'
  if (chance < 0.001) return 'less than 1 in 1,000 by chance'
  return `about 1 in ${Math.round(1 / chance).toLocaleString('en')} by chance`
}
