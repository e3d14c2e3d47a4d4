import { type CellLayout, cellPlace } from './cell-layout.ts'
import type { StormState } from './storm-model.ts'
import { type StateLook, stateLook, stateOrder } from './storm-states.ts'

export interface DrawnCell {
  state: StormState
  isSlow: boolean
}

interface Drawing {
  cells: DrawnCell[]
  layout: CellLayout
  width: number
  /** The cell that the pointer or the keyboard is on. */
  active: number | null
}

/** Glyphs on smaller cells would be specks. */
const markSizeMin = 6

/** Draws all cells in one pass: as elements, thousands of them would be laid out for each change. */
export function drawCells(canvas: HTMLCanvasElement, { cells, layout, width, active }: Drawing): void {
  const context = canvas.getContext('2d')
  if (!context) return
  const scale = window.devicePixelRatio || 1
  canvas.width = Math.max(1, Math.round(width * scale))
  canvas.height = Math.max(1, Math.round(layout.height * scale))
  context.scale(scale, scale)
  const colourOf = readColours(canvas)
  const looks = new Map(stateOrder.map((state) => [state, stateLook(state)]))
  const ground = colourOf('var(--line)')
  const ink = colourOf('var(--ink)')
  const surface = colourOf('var(--surface)')
  for (const [index, { state, isSlow }] of cells.entries()) {
    const look = looks.get(state)
    if (!look) continue
    const place = { ...cellPlace(layout, index), size: layout.size }
    drawCell(context, { place, look, colour: colourOf(look.colour), ground, surface })
    if (isSlow) outline(context, place, { colour: ink, inset: 0, width: layout.size >= 14 ? 2 : 1.25 })
  }
  if (active === null || active >= cells.length) return
  const place = { ...cellPlace(layout, active), size: layout.size }
  outline(context, place, { colour: surface, inset: 0, width: 4 })
  outline(context, place, { colour: colourOf('var(--focus)'), inset: -1, width: 2 })
}

interface Place {
  x: number
  y: number
  size: number
}

interface Paint {
  place: Place
  look: StateLook
  colour: string
  ground: string
  surface: string
}

function drawCell(context: CanvasRenderingContext2D, { place, look, colour, ground, surface }: Paint): void {
  const { x, y, size } = place
  if (look.mark === 'hollow') {
    outline(context, place, { colour, inset: 0.5, width: 1 })
    return
  }
  context.fillStyle = ground
  if (look.level < 1) context.fillRect(x, y, size, size)
  const filled = Math.max(look.level === 0 ? 0 : 1, Math.round(size * look.level))
  context.fillStyle = colour
  context.fillRect(x, y + size - filled, size, filled)
  if (size >= markSizeMin) drawMark(context, { place, mark: look.mark, colour: look.level === 1 ? surface : colour })
}

function drawMark(
  context: CanvasRenderingContext2D,
  { place: { x, y, size }, mark, colour }: { place: Place; mark: StateLook['mark']; colour: string },
): void {
  const near = size * 0.27
  const far = size - near
  context.fillStyle = colour
  context.strokeStyle = colour
  context.lineWidth = Math.max(1, size / 8)
  context.beginPath()
  if (mark === 'cross') {
    context.moveTo(x + near, y + near)
    context.lineTo(x + far, y + far)
    context.moveTo(x + far, y + near)
    context.lineTo(x + near, y + far)
    context.stroke()
  } else if (mark === 'bar') {
    context.moveTo(x + near, y + size / 2)
    context.lineTo(x + far, y + size / 2)
    context.stroke()
  } else if (mark === 'dot') {
    context.arc(x + size / 2, y + size / 2, Math.max(1, size / 6), 0, 2 * Math.PI)
    context.fill()
  }
}

function outline(
  context: CanvasRenderingContext2D,
  { x, y, size }: Place,
  { colour, inset, width }: { colour: string; inset: number; width: number },
): void {
  context.strokeStyle = colour
  context.lineWidth = width
  const edge = inset + (inset < 0 ? 0 : width / 2 - 0.5)
  context.strokeRect(x + edge, y + edge, size - 2 * edge, size - 2 * edge)
}

/** A canvas takes no CSS variables: the theme's colours are read from an element, each once for a drawing. */
function readColours(canvas: HTMLCanvasElement): (colour: string) => string {
  const known = new Map<string, string>()
  return (colour) => {
    const read = known.get(colour)
    if (read !== undefined) return read
    canvas.style.color = colour
    const computed = getComputedStyle(canvas).color
    known.set(colour, computed)
    return computed
  }
}
