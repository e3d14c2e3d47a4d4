'use client'

import { type RefObject, useEffect, useMemo, useRef, useState } from 'react'
import type uPlot from 'uplot'
import { formatAxisTime } from '../../lib/format-time'
import { useElementWidth } from '../../lib/use-element-width'
import { type ChartUnit, formatChartTick, scaleTop, ticksOf } from './chart-units'
import { loadPlot } from './load-plot'

export type ChartColour = 'a' | 'b' | 'c'

export interface ChartSeries {
  label: string
  colour: ChartColour
  dashed?: boolean
  /** As many as there are instants; null: not known. */
  values: (number | null)[]
}

/** A part of the axis of time, in seconds since 1970. */
export interface Zoom {
  from: number
  until: number
}

interface TimePlotOptions {
  unit: ChartUnit
  /** Seconds since 1970, ascending. */
  at: number[]
  series: ChartSeries[]
  /** Seconds since 1970: each is a dashed line from top to bottom. */
  marks: number[]
  /** Charts of the same key move their cursors together. */
  syncKey: string
  onCursor: (index: number | null) => void
  onZoom: (zoom: Zoom | null) => void
}

interface TimePlot {
  frame: RefObject<HTMLDivElement | null>
  /** The library could not be loaded: there is nothing to see. */
  hasFailed: boolean
  /** Moves the cursor to an instant. */
  show: (index: number) => void
}

const heightPx = 168
const widthBeforeMeasure = 480
/** Behind the table a chart has no width: its axes need some. */
const widthMinPx = 200
const daySeconds = 86_400
/** A shorter drag is a click. */
const dragMinPx = 8

/** Draws lines over time on a canvas, and keeps it up to date with data, size and theme. */
export function useTimePlot({ unit, at, series, marks, syncKey, onCursor, onZoom }: TimePlotOptions): TimePlot {
  const [frame, width] = useElementWidth<HTMLDivElement>(widthBeforeMeasure)
  const [hasFailed, setHasFailed] = useState(false)
  const plot = useRef<uPlot | null>(null)
  const theme = useTheme()
  const data = useMemo<uPlot.AlignedData>(() => [at, ...series.map(({ values }) => values)], [at, series])
  // What the plot reads when it is made, or when something happens to it.
  const latest = useRef({ data, series, marks, width, onCursor, onZoom })
  useEffect(() => {
    latest.current = { data, series, marks, width, onCursor, onZoom }
  })
  const shape = series.map(({ label, colour, dashed }) => `${label} ${colour} ${dashed}`).join()

  // biome-ignore lint/correctness/useExhaustiveDependencies: another shape or theme makes another plot
  useEffect(() => {
    const element = frame.current
    if (!element) return
    let isGone = false
    loadPlot()
      .then((Plot) => {
        if (isGone) return
        const { current } = latest
        const options = optionsOf(element, { unit, syncKey, latest })
        const width = Math.max(widthMinPx, current.width)
        plot.current = new Plot({ ...options, width, height: heightPx }, current.data, element)
      })
      .catch(() => setHasFailed(true))
    return () => {
      isGone = true
      plot.current?.destroy()
      plot.current = null
    }
  }, [unit, syncKey, shape, theme])

  useEffect(() => plot.current?.setData(data), [data])
  useEffect(() => plot.current?.setSize({ width: Math.max(widthMinPx, width), height: heightPx }), [width])

  function show(index: number) {
    const [drawn, second] = [plot.current, at[index]]
    if (drawn && second !== undefined) drawn.setCursor({ left: drawn.valToPos(second, 'x'), top: heightPx / 2 })
    onCursor(index)
  }
  return { frame, hasFailed, show }
}

/** Changes when the page's colours do. */
function useTheme(): number {
  const [changes, setChanges] = useState(0)
  useEffect(() => {
    const onChange = () => setChanges((count) => count + 1)
    const observer = new MutationObserver(onChange)
    observer.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] })
    const system = window.matchMedia('(prefers-color-scheme: dark)')
    system.addEventListener('change', onChange)
    return () => {
      observer.disconnect()
      system.removeEventListener('change', onChange)
    }
  }, [])
  return changes
}

/** A canvas takes no variables: what one of the page's colours is now. */
function colourIn(element: Element, name: string): string {
  const probe = document.createElement('span')
  probe.style.color = `var(--${name})`
  element.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

interface PlotParts {
  unit: ChartUnit
  syncKey: string
  latest: RefObject<Pick<TimePlotOptions, 'series' | 'marks' | 'onCursor' | 'onZoom'>>
}

type PlotLook = Omit<uPlot.Options, 'width' | 'height'>

function optionsOf(element: HTMLElement, { unit, syncKey, latest }: PlotParts): PlotLook {
  const { fontFamily } = getComputedStyle(element)
  const markColour = colourIn(element, 'ink-soft')
  const axis: uPlot.Axis = {
    stroke: colourIn(element, 'ink-faint'),
    grid: { stroke: colourIn(element, 'line'), width: 1 },
    ticks: { show: false },
    font: `11px ${fontFamily}`,
  }
  return {
    legend: { show: false },
    // Half of the last label on the axis of time stands beyond its end.
    padding: [8, 20, 0, 0],
    cursor: {
      y: false,
      sync: { key: syncKey },
      drag: { x: true, y: false, setScale: false },
      bind: {
        dblclick: () => () => {
          latest.current.onZoom(null)
          return null
        },
      },
    },
    scales: { y: { range: (_plot, _lowest, highest) => [0, scaleTop(unit, highest)] } },
    axes: [
      {
        ...axis,
        size: 26,
        space: 64,
        values: (_plot, marks, _axis, _space, distance) =>
          marks.map((second) => formatAxisTime(new Date(second * 1000), distance >= daySeconds)),
      },
      {
        ...axis,
        size: 72,
        space: 30,
        incrs: ticksOf(unit),
        values: (_plot, marks) => marks.map((value) => formatChartTick(unit, value)),
      },
    ],
    series: [{}, ...latest.current.series.map((one) => lineOf(element, one))],
    hooks: {
      drawClear: [(plot) => drawMarks(plot, latest.current.marks, markColour)],
      setCursor: [(plot) => latest.current.onCursor(plot.cursor.idx ?? null)],
      setSelect: [(plot) => zoomBySelection(plot, latest.current.onZoom)],
    },
  }
}

function drawMarks(plot: uPlot, marks: number[], colour: string): void {
  const { ctx, bbox } = plot
  ctx.save()
  ctx.strokeStyle = colour
  ctx.lineWidth = 1.5 * devicePixelRatio
  ctx.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio])
  for (const second of marks) {
    const left = plot.valToPos(second, 'x', true)
    if (left < bbox.left || left > bbox.left + bbox.width) continue
    ctx.beginPath()
    ctx.moveTo(left, bbox.top)
    ctx.lineTo(left, bbox.top + bbox.height)
    ctx.stroke()
  }
  ctx.restore()
}

function lineOf(element: Element, { label, colour, dashed }: ChartSeries): uPlot.Series {
  const stroke = colourIn(element, `chart-${colour}`)
  return {
    label,
    stroke,
    width: 1.75,
    ...(dashed && { dash: [5, 4] }),
    points: { size: 5, fill: stroke, filter: (plot, index, isShown) => (isShown ? null : alone(plot.data[index])) },
  }
}

/** Values without a neighbour: a line needs two of them to be visible. */
function alone(values: uPlot.AlignedData[number] | undefined): number[] {
  const isKnown = (index: number) => typeof values?.[index] === 'number'
  return Array.from(values ?? [], (_, index) => index).filter(
    (index) => isKnown(index) && !isKnown(index - 1) && !isKnown(index + 1),
  )
}

function zoomBySelection(plot: uPlot, onZoom: TimePlotOptions['onZoom']): void {
  const { left, width } = plot.select
  if (width === 0) return
  const [from, until] = [plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x')]
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
  if (width >= dragMinPx) onZoom({ from, until })
}
