'use client'

import { useNow } from '../../lib/use-now'
import type { BootSummary } from './boot-types'
import { phaseColour } from './phase-colour'
import { elapsedOf, layOutWaterfall } from './waterfall/waterfall-layout'

const widthPx = 1000
const refreshMs = 250

/**
 * A boot's phases in one line, on a scale that a list's boots share. Decoration: the list has the length in numbers.
 */
export function BootBar({ boot, scaleUs }: { boot: BootSummary; scaleUs: number }) {
  return boot.outcome === null ? (
    <GrowingBar boot={boot} scaleUs={scaleUs} />
  ) : (
    <FixedBar boot={boot} scaleUs={scaleUs} elapsedUs={boot.totalUs} />
  )
}

function GrowingBar({ boot, scaleUs }: { boot: BootSummary; scaleUs: number }) {
  return <FixedBar boot={boot} scaleUs={scaleUs} elapsedUs={elapsedOf(boot, useNow(refreshMs))} />
}

function FixedBar({ boot, scaleUs, elapsedUs }: { boot: BootSummary; scaleUs: number; elapsedUs: number }) {
  const phases = boot.phases.map((phase) => ({ ...phase, gaps: [] }))
  const { bars, totalUs } = layOutWaterfall({ phases, running: boot.outcome === null, elapsedUs, widthPx })
  const share = Math.min(1, totalUs / scaleUs)
  return (
    <span aria-hidden="true" className="block h-2 w-full overflow-hidden rounded-full bg-line/50">
      <svg
        aria-hidden="true"
        viewBox={`0 0 ${widthPx} 8`}
        preserveAspectRatio="none"
        className="block h-2 rounded-full"
        style={{ width: `${share * 100}%` }}
      >
        {bars.map((bar) => (
          <rect
            key={bar.name}
            x={bar.x}
            width={bar.width}
            height={8}
            fill={phaseColour(bar.name)}
            opacity={bar.name === 'breather' ? 0.55 : 1}
          />
        ))}
      </svg>
    </span>
  )
}

/** Nine of ten boots fit; the longest, often silent ones, would press all others to the left edge. */
export function barScaleUs(boots: { totalUs: number }[]): number {
  const sorted = boots.map(({ totalUs }) => totalUs).sort((a, b) => a - b)
  const high = sorted[Math.floor((sorted.length - 1) * 0.9)] ?? 0
  return Math.max(1_000_000, high * 1.1)
}
