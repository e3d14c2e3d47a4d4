'use client'

import { type BootPhase, bootPhases, bootPhaseText } from '@bootfarm/proto/boot-phases'
import { formatDuration } from '../../lib/format-quantity'
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
  const isLonger = totalUs > scaleUs
  return (
    <span aria-hidden="true" className="flex items-center gap-0.5">
      <span className="block h-2 flex-1 overflow-hidden rounded-full bg-line/50">
        <svg
          aria-hidden="true"
          viewBox={`0 0 ${widthPx} 8`}
          preserveAspectRatio="none"
          className="block h-2 max-w-none rounded-full"
          style={{ width: `${(totalUs / scaleUs) * 100}%` }}
        >
          {bars.map((bar) => (
            <rect
              key={bar.name}
              x={bar.x}
              width={bar.width}
              height={8}
              fill={phaseColour(bar.name)}
              opacity={phaseOpacity(bar.name)}
            />
          ))}
        </svg>
      </span>
      <span className="w-2 text-ink text-xs leading-2">{isLonger ? '›' : ''}</span>
    </span>
  )
}

const secondUs = 1_000_000
const roundSeconds = [1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 1800, 3600]

/**
 * The end of the scale of a list's bars. Nine of ten boots fit; the longest, often those that timed out, would press
 * all others to the left edge: their bars are cut, and end in a mark.
 */
export function barScaleUs(boots: { totalUs: number }[]): number {
  const sorted = boots.map(({ totalUs }) => totalUs).sort((a, b) => a - b)
  const high = sorted[Math.floor((sorted.length - 1) * 0.9)] ?? 0
  const round = roundSeconds.find((seconds) => seconds * secondUs >= high)
  return round ? round * secondUs : high
}

/** `0 to 20 s`. */
export function scaleText(scaleUs: number): string {
  return `0 to ${formatDuration(scaleUs).replace(/\.0+(?=\D)/, '')}`
}

/** What the colours and the mark of the bars mean. */
export function BarLegend() {
  return (
    <div className="flex flex-wrap gap-x-4 gap-y-1 border-line border-t px-4 py-2 text-ink-soft text-xs max-sm:hidden">
      <ul aria-label="Phases" className="flex flex-wrap gap-x-4 gap-y-1">
        {bootPhases
          .filter((name) => name !== 'ready')
          .map((name) => (
            <li key={name} className="flex items-center gap-1.5">
              <span
                aria-hidden="true"
                className="size-2 rounded-sm"
                style={{ background: phaseColour(name), opacity: phaseOpacity(name) }}
              />
              {bootPhaseText(name).title}
            </li>
          ))}
      </ul>
      <span>› longer than the scale</span>
    </div>
  )
}

function phaseOpacity(name: BootPhase): number {
  return name === 'breather' ? 0.55 : 1
}
