import type { Tone } from '../../components/tag'
import { formatCount, formatDuration } from '../../lib/format-quantity.ts'
import type { RouterOutputs } from '../../lib/trpc'
import { hrefIn, type Scope } from './overview-scope.ts'

type Overview = RouterOutputs['overview']['get']

export interface Figure {
  label: string
  value: string
  note?: string
  tone?: Tone
  href: string
}

/** The scope in seven numbers; each leads to the list of exactly what it counts. */
export function figuresOf({ counts, last24Hours }: Pick<Overview, 'counts' | 'last24Hours'>, scope: Scope): Figure[] {
  const { since, readyCount, failedCount, noResponseCount, p50Us, p95Us } = last24Hours
  const ended = readyCount + failedCount
  const boots = (outcome: string, sort?: string) =>
    hrefIn(scope, '/boots', { outcome, since, ...(sort ? { sort } : {}) })
  return [
    {
      label: 'Edges online',
      value: formatCount(counts.edgesOnline),
      note: `of ${formatCount(counts.edges)}`,
      tone: counts.edgesOnline < counts.edges || counts.edges === 0 ? 'failed' : 'ready',
      href: hrefIn(scope, '/edges', { state: 'online' }),
    },
    {
      label: 'Booting now',
      value: formatCount(counts.bootsBooting),
      note: `of ${formatCount(counts.devices)}`,
      ...(counts.bootsBooting > 0 && { tone: 'live' as const }),
      href: hrefIn(scope, '/boots', { outcome: 'booting' }),
    },
    {
      label: 'Ready (24\u00a0h)',
      value: formatCount(readyCount),
      ...(ended > 0 && { note: `${((readyCount / ended) * 100).toFixed(1)} %` }),
      href: boots('ready'),
    },
    {
      label: 'Failed or timed out (24\u00a0h)',
      value: formatCount(failedCount),
      ...(failedCount > 0 && { tone: 'failed' as const }),
      ...(ended > 0 && { note: `of ${formatCount(ended)}` }),
      href: boots('unsuccessful'),
    },
    {
      label: 'No response to wake (24\u00a0h)',
      value: formatCount(noResponseCount),
      href: boots('no_response'),
    },
    {
      label: 'Boot time (median, 24\u00a0h)',
      value: p50Us === null ? '–' : formatDuration(p50Us),
      href: boots('ready', 'durationUs'),
    },
    {
      label: 'Boot time (p95, 24\u00a0h)',
      value: p95Us === null ? '–' : formatDuration(p95Us),
      href: boots('ready', '-durationUs'),
    },
  ]
}
