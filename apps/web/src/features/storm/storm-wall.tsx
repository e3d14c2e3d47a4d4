'use client'

import { useEffect } from 'react'
import { Button } from '../../components/button'
import { formatCount } from '../../lib/format-quantity'
import { LiveMark } from '../live/live-updates'
import { estimate, totalsOf } from './storm-figures'
import { StormLegend } from './storm-legend'
import { StormMap } from './storm-map'
import { estimateText } from './storm-text'
import type { StormView } from './storm-view'
import { useAwakeScreen } from './use-awake-screen'
import { useWindowHeight } from './use-window-height'

/** The map takes what the figures and the legend leave of the window. */
const mapShare = 0.62

/** The storm for a wall: no navigation, and text that is read from four metres. */
export function StormWall({ view, title, onLeave }: { view: StormView; title: string; onLeave: () => void }) {
  const { cells, counts, kinds, nowMs, slowKeys } = view
  const { isAwake } = useAwakeScreen(true)
  const heightPx = useWindowHeight()
  const totals = totalsOf(cells)
  const left = estimateText(estimate(cells, kinds, nowMs))
  useEffect(() => {
    // Escape ends the browser's full screen, and with it the wall.
    const onChange = () => {
      if (!document.fullscreenElement) onLeave()
    }
    document.addEventListener('fullscreenchange', onChange)
    return () => document.removeEventListener('fullscreenchange', onChange)
  }, [onLeave])
  return (
    <div className="flex min-h-dvh flex-col gap-[2vmin] p-[2vmin]">
      <header className="flex flex-wrap items-baseline justify-between gap-x-[4vmin] gap-y-[1vmin]">
        <h1 className="font-semibold text-[3.6vmin] text-ink leading-[4.4vmin]">{title}</h1>
        <div className="flex items-center gap-3">
          <LiveMark />
          {!isAwake && <span className="text-ink-faint text-xs">This browser may turn the screen off.</span>}
          <Button look="bare" onClick={onLeave}>
            Leave full screen
          </Button>
        </div>
      </header>
      <dl className="flex flex-wrap gap-x-[6vmin] gap-y-[1vmin]">
        <WallFigure label="Ready" value={`${formatCount(totals.ready)} of ${formatCount(totals.devices)}`} />
        <WallFigure label="Booting" value={formatCount(totals.booting)} />
        {totals.queued > 0 && <WallFigure label="Waiting" value={formatCount(totals.queued)} />}
        <WallFigure
          label="Failed or timed out"
          value={formatCount(totals.unsuccessful)}
          isBad={totals.unsuccessful > 0}
        />
        <WallFigure label="Stragglers" value={formatCount(slowKeys.size)} />
        <WallFigure label="Time left" value={left.value} note={left.basis} />
      </dl>
      <StormMap cells={cells} slowKeys={slowKeys} nowMs={nowMs} heightPx={heightPx * mapShare} />
      <StormLegend counts={counts} slowCount={slowKeys.size} large />
    </div>
  )
}

function WallFigure({
  label,
  value,
  note,
  isBad = false,
}: {
  label: string
  value: string
  note?: string
  isBad?: boolean
}) {
  return (
    <div className="flex flex-col">
      <dt className="text-[2.6vmin] text-ink-soft leading-[3.4vmin]">{label}</dt>
      <dd className={`font-semibold text-[6vmin] leading-[7vmin] tracking-tight ${isBad ? 'text-failed' : 'text-ink'}`}>
        {value}
        {note && (
          <span className="block font-normal text-[2.2vmin] text-ink-soft leading-[3vmin] tracking-normal">{note}</span>
        )}
      </dd>
    </div>
  )
}
