import { type BootSettingName, conditionNames, parseBootSetting } from '../rules/boot-settings.ts'

/** The cells of an experiment, and the order of its boots: pure. */

export interface Factor {
  setting: BootSettingName
  /** Null: what the device has without the experiment. */
  values: (string | null)[]
}

/** The settings of one cell. */
export type Cell = string[]

/**
 * Every combination of the factors' values, without repeats. Each condition (a cold cache) has a cell without any other
 * setting, with which the cells of that condition are compared; the first cell is what devices have without the
 * experiment, or the first condition.
 */
export function cellsOf(factors: Factor[]): Cell[] {
  const combined = factors.reduce<Cell[]>(
    (cells, { setting, values }) =>
      cells.flatMap((cell) => values.map((value) => (value === null ? cell : [...cell, `${setting}=${value}`]))),
    [[]],
  )
  const references = new Set(combined.map((cell) => keyOf(conditionOf(cell))))
  const ordered = [...[...references].map((key) => JSON.parse(key) as Cell), ...combined.map((cell) => cell.toSorted())]
  return [...new Map(ordered.map((cell) => [keyOf(cell), cell])).values()]
}

function keyOf(cell: Cell): string {
  return JSON.stringify(cell)
}

/** The part of a cell that nobody can apply. */
export function conditionOf(cell: Cell): Cell {
  return cell.filter((text) => {
    const setting = parseBootSetting(text)
    return setting !== null && conditionNames.includes(setting.name)
  })
}

/** The index of the cell with which a cell is compared: the same condition without settings. */
export function referenceOf(cells: Cell[], cell: Cell): number {
  const wanted = keyOf(conditionOf(cell))
  return Math.max(
    0,
    cells.findIndex((other) => keyOf(other) === wanted),
  )
}

export interface PlannedTrial {
  deviceIndex: number
  /** The order of its device's trials. */
  position: number
  repetition: number
  cell: number
}

interface Size {
  devices: number
  cells: number
  repetitions: number
}

/**
 * Randomized complete blocks: in each repetition each device boots once with each cell, in a random order that follows
 * from the seed. What drifts from hour to hour, and what differs between devices, then meets all cells alike.
 */
export function planTrials({ devices, cells, repetitions }: Size, seed: number): PlannedTrial[] {
  const random = randomOf(seed)
  return Array.from({ length: devices }, (_, deviceIndex) =>
    Array.from({ length: repetitions }, (_, repetition) =>
      shuffled(cells, random).map((cell, index) => {
        return { deviceIndex, position: repetition * cells + index, repetition, cell }
      }),
    ),
  ).flat(2)
}

function shuffled(count: number, random: () => number): number[] {
  const all = Array.from({ length: count }, (_, index) => index)
  for (let index = count - 1; index > 0; index -= 1) {
    const other = Math.floor(random() * (index + 1))
    const [one, two] = [all[index] ?? 0, all[other] ?? 0]
    all[index] = two
    all[other] = one
  }
  return all
}

/** Mulberry32: the same seed gives the same numbers everywhere. */
function randomOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Between two boots of a device: the order reaches it, and it restarts. */
const betweenBootsMs = 15_000

/** About how long the boots take, if each lasts as long as `bootMs`. */
export function durationOf({ devices, cells, repetitions }: Size, atOnce: number, bootMs: number): number {
  return Math.ceil(devices / Math.min(devices, atOnce)) * cells * repetitions * (bootMs + betweenBootsMs)
}
