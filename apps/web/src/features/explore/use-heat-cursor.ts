'use client'

import { type KeyboardEvent, type PointerEvent, useMemo, useRef, useState } from 'react'
import { cellText, rangeText } from './box-text'
import type { Box } from './explore-inputs'
import { boxOfRange, type Cell, type CellRange, countsOf, type Exploration, rangeOf, rangeOfBox } from './heat-layout'

export interface HeatMapProps {
  exploration: Exploration
  box: Box | null
  onBox: (box: Box | null) => void
}

const moves: Record<string, Cell> = {
  ArrowLeft: { step: -1, bin: 0 },
  ArrowRight: { step: 1, bin: 0 },
  ArrowUp: { step: 0, bin: 1 },
  ArrowDown: { step: 0, bin: -1 },
  PageUp: { step: 0, bin: 5 },
  PageDown: { step: 0, bin: -5 },
  Home: { step: -1e6, bin: 0 },
  End: { step: 1e6, bin: 0 },
}

/** The cell under the pointer or the keyboard, and the box that both choose. */
export function useHeatCursor({ exploration, box, onBox }: HeatMapProps) {
  const [columns, rows] = [exploration.steps.length, exploration.durationEdgesUs.length]
  const [focused, setFocused] = useState<Cell>({ step: columns - 1, bin: 0 })
  const [hasFocus, setHasFocus] = useState(false)
  const [pointed, setPointed] = useState<Cell | null>(null)
  const [dragged, setDragged] = useState<CellRange | null>(null)
  const countAt = useMemo(() => countsOf(exploration), [exploration])
  const within = ({ step, bin }: Cell): Cell => ({
    step: Math.max(0, Math.min(columns - 1, step)),
    bin: Math.max(0, Math.min(rows - 1, bin)),
  })
  const cell = within(focused)
  const active = pointed ?? (hasFocus ? cell : null)
  const choose = (range: CellRange) => onBox(boxOfRange(exploration, range))
  const pointer = useDrag({ columns, rows, within, setPointed, setDragged, choose })
  const onKeyDown = useKeys({ cell, within, setFocused, setPointed, setDragged, choose, clear: () => onBox(null) })
  return {
    columns,
    rows,
    cell,
    active,
    chosen: dragged ?? (box && rangeOfBox(exploration, box)),
    text: dragged ? rangeText(exploration, dragged) : cellText(exploration, active ?? cell, countAt),
    isIdle: !active && !dragged,
    handlers: {
      ...pointer,
      onKeyDown,
      onFocus: () => setHasFocus(true),
      onBlur: () => {
        setHasFocus(false)
        setDragged(null)
      },
    },
  }
}

interface Steering {
  within: (cell: Cell) => Cell
  setPointed: (cell: Cell | null) => void
  setDragged: (range: CellRange | null) => void
  choose: (range: CellRange) => void
}

function useDrag({
  columns,
  rows,
  within,
  setPointed,
  setDragged,
  choose,
}: Steering & { columns: number; rows: number }) {
  const from = useRef<Cell | null>(null)
  const cellAt = (event: PointerEvent<HTMLElement>): Cell => {
    const area = event.currentTarget.getBoundingClientRect()
    return within({
      step: Math.floor(((event.clientX - area.left) / area.width) * columns),
      bin: rows - 1 - Math.floor(((event.clientY - area.top) / area.height) * rows),
    })
  }
  const end = () => {
    from.current = null
    setDragged(null)
  }
  return {
    onPointerDown: (event: PointerEvent<HTMLElement>) => {
      if (event.button !== 0) return
      event.currentTarget.setPointerCapture(event.pointerId)
      from.current = cellAt(event)
    },
    onPointerMove: (event: PointerEvent<HTMLElement>) => {
      const at = cellAt(event)
      setPointed(at)
      if (from.current) setDragged(rangeOf(from.current, at))
    },
    onPointerUp: (event: PointerEvent<HTMLElement>) => {
      if (from.current) choose(rangeOf(from.current, cellAt(event)))
      end()
    },
    onPointerCancel: end,
    onPointerLeave: () => setPointed(null),
  }
}

interface KeySteering extends Steering {
  cell: Cell
  setFocused: (cell: Cell) => void
  clear: () => void
}

function useKeys({ cell, within, setFocused, setPointed, setDragged, choose, clear }: KeySteering) {
  const anchor = useRef<Cell | null>(null)
  const stretch = (from: Cell | null, to: Cell) => {
    anchor.current = from
    setDragged(from && rangeOf(from, to))
  }
  return (event: KeyboardEvent<HTMLElement>) => {
    if (event.key === 'Escape') {
      stretch(null, cell)
      clear()
    }
    if (event.key === 'Enter') {
      choose(rangeOf(anchor.current ?? cell, cell))
      stretch(null, cell)
    }
    const move = moves[event.key]
    if (!move) return
    event.preventDefault()
    const next = within({ step: cell.step + move.step, bin: cell.bin + move.bin })
    stretch(event.shiftKey ? (anchor.current ?? cell) : null, next)
    setPointed(null)
    setFocused(next)
  }
}
