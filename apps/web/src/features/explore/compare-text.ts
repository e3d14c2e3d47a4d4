import { bootPhaseText } from '@bootfarm/proto/boot-phases'
import { formatCount, formatDuration } from '../../lib/format-quantity.ts'
import type { RouterOutputs } from '../../lib/trpc'

export type Comparison = RouterOutputs['explore']['compare']
export type ComparedPhase = Comparison['phases'][number]
type Difference = NonNullable<ComparedPhase['difference']>

export function phaseTitle(phase: ComparedPhase['phase']): string {
  if (phase === 'total') return 'Whole boot'
  return phase === 'other' ? 'In no phase' : bootPhaseText(phase).title
}

/** With its sign; `0 s` for none. */
export function signedDuration(us: number): string {
  if (Math.round(us) === 0) return '0\u00a0s'
  return `${us < 0 ? '−' : '+'}${formatDuration(Math.abs(us))}`
}

export function verdictOf(difference: Difference | null): { text: string; tone: 'plain' | 'ready' | 'failed' } {
  if (!difference) return { text: 'too few boots', tone: 'plain' }
  if (!difference.isClear) return { text: 'may be chance', tone: 'plain' }
  return difference.difference > 0 ? { text: 'slower', tone: 'failed' } : { text: 'quicker', tone: 'ready' }
}

/** The result in a sentence. */
export function summaryOf({ phases, set, base }: Comparison): string {
  if (set.sample.bootCount === 0) return 'These filters have no boots.'
  if (base.sample.bootCount === 0) return 'The baseline has no boots.'
  const total = phases.find(({ phase }) => phase === 'total')?.difference
  if (!total) return 'Too few boots became ready to compare: ten in each set are needed.'
  if (!total.isClear)
    return `The median boot takes as long, as far as ${bootsText(set)} and ${bootsText(base)} tell: ${intervalText(total)}.`
  const by = formatDuration(Math.abs(total.difference))
  const slower = phases.filter(({ phase, difference }) => phase !== 'total' && difference?.isClear)
  const most = slower.sort((a, b) => sizeOf(b) - sizeOf(a))[0]
  const where = most
    ? ` The largest part of it: ${phaseTitle(most.phase)} (${signedDuration(most.difference?.difference ?? 0)}).`
    : ''
  return `The median boot is ${by} ${total.difference > 0 ? 'slower' : 'quicker'} (${intervalText(total)}).${where}`
}

const sizeOf = ({ difference }: ComparedPhase) => Math.abs(difference?.difference ?? 0)

export function intervalText({ low, high }: Difference): string {
  return `${signedDuration(low)} to ${signedDuration(high)}`
}

function bootsText({ figures: { readyCount } }: Comparison['set']): string {
  return `${formatCount(readyCount)} ready ${readyCount === 1 ? 'boot' : 'boots'}`
}

const points = (share: number) => `${share < 0 ? '−' : '+'}${(Math.abs(share) * 100).toFixed(1)}`

/** The failures of both sets in a sentence. */
export function failuresText({ failures, set, base }: Comparison): string {
  const shareOf = ({ figures: { failedCount, readyCount } }: Comparison['set']) => {
    const over = failedCount + readyCount
    if (over === 0) return 'none of 0'
    return `${((failedCount / over) * 100).toFixed(1)}\u00a0% (${formatCount(failedCount)} of ${formatCount(over)})`
  }
  const shares = `${shareOf(set)} failed or timed out, ${shareOf(base)} in the baseline`
  if (!failures) return `${shares}.`
  const verdict = failures.isClear ? '' : ', which may be chance'
  return `${shares}: ${points(failures.difference)} percentage points (${points(failures.low)} to ${points(failures.high)})${verdict}.`
}
