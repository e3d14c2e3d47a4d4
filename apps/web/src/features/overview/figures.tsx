import Link from 'next/link'
import { Dot, type Tone } from '../../components/tag'
import { formatCount, formatDuration } from '../../lib/format-quantity'
import type { RouterOutputs } from '../../lib/trpc'

type FarmOverview = RouterOutputs['farm']['overview']

interface Figure {
  label: string
  value: string
  note?: string
  tone?: Tone
  href: string
}

/** The farm in six numbers; each leads to what it counts. */
export function Figures({ counts, last24Hours }: Pick<FarmOverview, 'counts' | 'last24Hours'>) {
  const { readyCount, failedCount, p50Us, p95Us } = last24Hours
  const ended = readyCount + failedCount
  const figures: Figure[] = [
    {
      label: 'Edges online',
      value: formatCount(counts.edgesOnline),
      note: `of ${formatCount(counts.edges)}`,
      tone: counts.edgesOnline < counts.edges || counts.edges === 0 ? 'failed' : 'ready',
      href: '/edges',
    },
    {
      label: 'Booting now',
      value: formatCount(counts.devicesBooting),
      note: `of ${formatCount(counts.devices)}`,
      ...(counts.devicesBooting > 0 && { tone: 'live' as const }),
      href: '/boots?outcome=booting',
    },
    {
      label: 'Ready (24\u00a0h)',
      value: formatCount(readyCount),
      ...(ended > 0 && { note: `${((readyCount / ended) * 100).toFixed(1)} %` }),
      href: '/boots?outcome=ready&period=24h',
    },
    {
      label: 'Failed or timed out (24\u00a0h)',
      value: formatCount(failedCount),
      ...(failedCount > 0 && { tone: 'failed' as const }),
      ...(ended > 0 && { note: `of ${formatCount(ended)}` }),
      href: '/boots?period=24h',
    },
    {
      label: 'Boot time (median, 24\u00a0h)',
      value: p50Us === null ? '–' : formatDuration(p50Us),
      href: '/boots?outcome=ready&period=24h',
    },
    {
      label: 'Boot time (p95, 24\u00a0h)',
      value: p95Us === null ? '–' : formatDuration(p95Us),
      href: '/boots?outcome=ready&period=24h',
    },
  ]
  return (
    <ul
      aria-label="Figures"
      className="grid grid-cols-2 gap-px overflow-hidden rounded-lg border border-line bg-line sm:grid-cols-3 xl:grid-cols-6"
    >
      {figures.map(({ label, value, note, tone, href }) => (
        <li key={label} className="bg-surface">
          <Link href={href} className="block px-4 py-3 -outline-offset-2 hover:bg-hover">
            <span className="flex items-center gap-1.5 text-ink-faint text-xs">
              {tone && <Dot tone={tone} pulsing={tone === 'live'} />}
              {label}
            </span>
            <span className="mt-0.5 flex items-baseline gap-1.5">
              <span className="font-semibold text-ink text-xl tracking-tight">{value}</span>
              {note && <span className="truncate text-ink-faint text-xs">{note}</span>}
            </span>
          </Link>
        </li>
      ))}
    </ul>
  )
}
