import type { Tone } from '../../components/tag'
import { formatCount, formatDuration } from '../../lib/format-quantity.ts'
import type { RouterOutputs } from '../../lib/trpc'
import { hrefIn, type Scope } from './overview-scope.ts'

type Overview = RouterOutputs['overview']['get']
type CollectionOverview = RouterOutputs['overview']['ofCollection']
/** The address of a list within the place that the figures are of. */
type HrefOf = (path: string, filters?: Record<string, string>) => string

export interface Figure {
  label: string
  value: string
  note?: string
  tone?: Tone
  href: string
}

/** The scope in seven numbers; each leads to the list of exactly what it counts. */
export function figuresOf({ counts, last24Hours }: Pick<Overview, 'counts' | 'last24Hours'>, scope: Scope): Figure[] {
  const hrefOf: HrefOf = (path, filters) => hrefIn(scope, path, filters)
  return [
    {
      label: 'Edges online',
      value: formatCount(counts.edgesOnline),
      note: `of ${formatCount(counts.edges)}`,
      tone: counts.edgesOnline < counts.edges || counts.edges === 0 ? 'failed' : 'ready',
      href: hrefOf('/edges', { state: 'online' }),
    },
    ...bootFigures({ booting: counts.bootsBooting, devices: counts.devices, ...last24Hours }, hrefOf),
  ]
}

/** The same of a collection, which has devices and no edges. */
export function collectionFiguresOf(overview: CollectionOverview, collectionId: string): Figure[] {
  const { deviceCount, bootsBooting, last24Hours } = overview
  const hrefOf: HrefOf = (path, filters) => `${path}?${new URLSearchParams({ ...filters, collection: collectionId })}`
  return [
    { label: 'Devices', value: formatCount(deviceCount), href: hrefOf('/devices') },
    ...bootFigures({ booting: bootsBooting, devices: deviceCount, ...last24Hours }, hrefOf),
  ]
}

type BootNumbers = Omit<Overview['last24Hours'], 'generatedCount'> & { booting: number; devices: number }

function bootFigures(numbers: BootNumbers, hrefOf: HrefOf): Figure[] {
  const { booting, devices, since, readyCount, failedCount, noResponseCount, p50Us, p95Us } = numbers
  const ended = readyCount + failedCount
  const boots = (outcome: string, sort?: string) => hrefOf('/boots', { outcome, since, ...(sort ? { sort } : {}) })
  return [
    {
      label: 'Booting now',
      value: formatCount(booting),
      note: `of ${formatCount(devices)}`,
      ...(booting > 0 && { tone: 'live' as const }),
      href: hrefOf('/boots', { outcome: 'booting' }),
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
