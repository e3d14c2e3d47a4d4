'use client'

import { useRouter } from 'next/navigation'
import { type KeyboardEvent, type MouseEvent, useEffect, useId, useRef, useState } from 'react'
import { formatDuration } from '../../lib/format-quantity'
import { useElementWidth } from '../../lib/use-element-width'
import { type CellLayout, cellAfterKey, cellAt, cellPlace, layOutCells } from './cell-layout'
import { drawCells } from './draw-cells'
import { unpackId } from './packed-id'
import { elapsedMsOf, isBooting, type StormCell } from './storm-model'
import { stateLook } from './storm-states'

interface StormMapProps {
  /** In the order in which they are shown. */
  cells: StormCell[]
  /** The devices that are slower than usual, by their keys. */
  slowKeys: ReadonlySet<string>
  nowMs: number
  heightPx: number
}

const widthBeforeMeasure = 900

/**
 * The devices as cells. For the keyboard and for screen readers it is one slider over all of them, whose value is a
 * device in words; the table has the same as rows.
 */
export function StormMap({ cells, slowKeys, nowMs, heightPx }: StormMapProps) {
  const open = useOpenCell(cells)
  const [frame, width] = useElementWidth<HTMLDivElement>(widthBeforeMeasure)
  const [focused, setFocused] = useState(0)
  const [hasFocus, setHasFocus] = useState(false)
  const [pointed, setPointed] = useState<number | null>(null)
  const hintId = useId()
  const layout = layOutCells(cells.length, { width, height: heightPx })
  const position = Math.min(focused, Math.max(0, cells.length - 1))
  const active = pointed ?? (hasFocus ? position : null)

  const indexAt = (event: MouseEvent<HTMLElement>) => {
    const box = event.currentTarget.getBoundingClientRect()
    return cellAt(layout, cells.length, { x: event.clientX - box.left, y: event.clientY - box.top })
  }
  const onKey = (event: KeyboardEvent<HTMLElement>) => {
    if (event.key === 'Enter') return open(position, event.ctrlKey || event.metaKey)
    const next = cellAfterKey(layout, cells.length, { index: position, key: event.key })
    if (next === null) return
    event.preventDefault()
    setPointed(null)
    setFocused(next)
  }
  const shown = active === null ? undefined : cells[active]
  return (
    <div ref={frame} className="relative min-w-0">
      <div
        role="slider"
        tabIndex={0}
        aria-label="Devices by phase"
        aria-describedby={hintId}
        aria-valuemin={1}
        aria-valuemax={Math.max(1, cells.length)}
        aria-valuenow={position + 1}
        aria-valuetext={cells[position] ? cellText(cells[position], nowMs, slowKeys) : 'no devices'}
        className="cursor-pointer rounded-sm"
        onKeyDown={onKey}
        onFocus={() => setHasFocus(true)}
        onBlur={() => setHasFocus(false)}
        onPointerMove={(event) => setPointed(indexAt(event))}
        onPointerLeave={() => setPointed(null)}
        onClick={(event) => open(indexAt(event), event.ctrlKey || event.metaKey)}
        onAuxClick={(event) => event.button === 1 && open(indexAt(event), true)}
      >
        <CellCanvas cells={cells} slowKeys={slowKeys} layout={layout} width={width} active={active} />
      </div>
      <p id={hintId} className="sr-only">
        Arrow keys move between devices. Enter opens the boot of the device.
      </p>
      {shown && active !== null && (
        <CellTip place={tipPlace(layout, active, width)} text={cellText(shown, nowMs, slowKeys)} />
      )}
    </div>
  )
}

interface CellCanvasProps extends Pick<StormMapProps, 'cells' | 'slowKeys'> {
  layout: CellLayout
  width: number
  active: number | null
}

/** Draws after each render: of its cells any may have changed. */
function CellCanvas({ cells, slowKeys, layout, width, active }: CellCanvasProps) {
  const canvas = useRef<HTMLCanvasElement>(null)
  useEffect(() => {
    const drawn = cells.map(({ state, key }) => ({ state, isSlow: slowKeys.has(key) }))
    if (canvas.current) drawCells(canvas.current, { cells: drawn, layout, width, active })
  })
  // Its colour is set to read the theme's colours: a transition would give one for another.
  return <canvas ref={canvas} className="block" style={{ width: '100%', height: layout.height, transition: 'none' }} />
}

/** Returns a function that opens a cell by its index. */
function useOpenCell(cells: StormCell[]): (index: number | null, isApart: boolean) => void {
  const router = useRouter()
  return (index, isApart) => {
    const cell = index === null ? undefined : cells[index]
    if (!cell) return
    if (isApart) window.open(hrefOfCell(cell), '_blank', 'noopener')
    else router.push(hrefOfCell(cell))
  }
}

/** The boot of a cell, or its device where there is none. */
export function hrefOfCell({ bootId, deviceId }: StormCell): string {
  return bootId === null ? `/devices/${unpackId(deviceId ?? '')}` : `/boots/${unpackId(bootId)}`
}

export function cellText(cell: StormCell, nowMs: number, slowKeys: ReadonlySet<string>): string {
  const elapsedMs = elapsedMsOf(cell, nowMs)
  const parts = [cell.name, cell.siteName, stateLook(cell.state).title]
  if (elapsedMs !== null) parts.push(`${formatDuration(elapsedMs * 1000)}${isBooting(cell) ? ' so far' : ''}`)
  if (slowKeys.has(cell.key)) parts.push('slower than usual')
  return parts.filter(Boolean).join(' · ')
}

const tipWidth = 280

interface TipPlace {
  left: number
  top: number
}

function tipPlace(layout: CellLayout, index: number, width: number): TipPlace {
  const { x, y } = cellPlace(layout, index)
  return { left: Math.max(0, Math.min(x, width - tipWidth)), top: y + layout.pitch + 4 }
}

function CellTip({ place, text }: { place: TipPlace; text: string }) {
  return (
    <div
      aria-hidden="true"
      className="pointer-events-none absolute z-10 rounded-md border border-line-strong bg-raised px-2.5 py-1.5 text-ink text-xs shadow-md"
      style={{ ...place, maxWidth: tipWidth }}
    >
      {text}
    </div>
  )
}
