'use client'

import { type BootPhase, bootPhaseText } from '@bootfarm/proto/boot-phases'
import { useState } from 'react'
import { Button } from '../../../components/button'
import { Panel } from '../../../components/page'
import { classNames } from '../../../lib/class-names'
import { useNow } from '../../../lib/use-now'
import type { BootDetail } from '../boot-types'
import { ConsolePanel, useConsole } from '../console-panel'
import { type BootUsual, baselineOf, usualSentence } from '../path/usual'
import { unknownSteps } from './guest-steps'
import type { Series } from './series-layout'
import { SeriesTable } from './series-rows'
import { type Span, Waterfall } from './waterfall'
import { absentPhases, elapsedOf } from './waterfall-layout'

const growMs = 100

interface BootWaterfallProps {
  boot: BootDetail
  /** Drawn behind the phases; undefined while it is read. */
  usual: BootUsual | undefined
}

/** The waterfall, and beside it what the machine wrote to its serial console where that is kept. */
export function BootWaterfall({ boot, usual }: BootWaterfallProps) {
  const running = boot.outcome === null
  const lines = useConsole(boot.id, running)
  const [marked, setMarked] = useState<Span | null>(null)
  return (
    <div className={classNames('grid grid-cols-1 items-start gap-5', lines && 'xl:grid-cols-[minmax(0,1fr)_380px]')}>
      <Panel title="Timeline" aside={<Legend boot={boot} />}>
        <LiveWaterfall boot={boot} usual={usual} onMark={lines ? setMarked : undefined} />
        {usual && <p className="mt-3 text-ink-soft text-xs">{usualSentence(boot.phases, usual)}</p>}
        {boot.series && <SeriesInNumbers series={boot.series} />}
        <NotKnown boot={boot} />
      </Panel>
      {lines && <ConsolePanel console={lines} running={running} marked={marked} className="xl:sticky xl:top-16" />}
    </div>
  )
}

interface LiveWaterfallProps extends BootWaterfallProps {
  onMark: ((span: Span | null) => void) | undefined
}

function LiveWaterfall(props: LiveWaterfallProps) {
  if (props.boot.outcome === null) return <GrowingWaterfall {...props} />
  return <PlacedWaterfall {...props} elapsedUs={props.boot.totalUs} />
}

function GrowingWaterfall(props: LiveWaterfallProps) {
  return <PlacedWaterfall {...props} elapsedUs={elapsedOf(props.boot, useNow(growMs))} />
}

function PlacedWaterfall({ boot, usual, onMark, elapsedUs }: LiveWaterfallProps & { elapsedUs: number }) {
  return (
    <Waterfall
      phases={boot.phases}
      steps={boot.guest?.steps ?? []}
      running={boot.outcome === null}
      elapsedUs={elapsedUs}
      usual={baselineOf(usual)?.times.phases}
      series={boot.series}
      onMark={onMark}
    />
  )
}

function SeriesInNumbers({ series }: { series: Series }) {
  const [open, setOpen] = useState(false)
  return (
    <div className="mt-3">
      <Button small aria-expanded={open} onClick={() => setOpen(!open)}>
        {open ? 'Hide values over time' : 'Show values over time'}
      </Button>
      {open && (
        <div className="mt-2">
          <SeriesTable series={series} />
        </div>
      )}
    </div>
  )
}

function Legend({ boot }: { boot: BootDetail }) {
  return (
    <>
      {boot.guest && boot.guest.steps.length > 0 && (
        <span title="Thin bars are reported by the OS and placed relative to the start of its kernel.">
          Reported by the OS
        </span>
      )}
      <span className="flex items-center gap-2">
        <span
          aria-hidden="true"
          className="h-2.5 w-6 rounded-sm"
          style={{
            background: 'repeating-linear-gradient(135deg, var(--phase-breather) 0 1.5px, transparent 1.5px 5px)',
          }}
        />{' '}
        No network traffic
      </span>
    </>
  )
}

/** Parts whose absence a reader would wonder about. */
function NotKnown({ boot }: { boot: BootDetail }) {
  const running = boot.outcome === null
  const { notPartOfThisBoot, notReached } = absentPhases(boot.phases)
  const titles = (names: BootPhase[]) => names.map((name) => bootPhaseText(name).title).join(', ')
  const unknown = unknownSteps(boot.guest, running)
  return (
    <div className="mt-3 flex flex-wrap gap-x-6 gap-y-1 border-line border-t pt-3 text-ink-faint text-xs">
      {notPartOfThisBoot.length > 0 && <p>Not measured: {titles(notPartOfThisBoot)}</p>}
      {notReached.length > 0 && (
        <p>
          {running ? 'Not reached yet' : 'Not reached'}: {titles(notReached)}
        </p>
      )}
      {unknown && <p>{unknown}</p>}
    </div>
  )
}
