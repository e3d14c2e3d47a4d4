import { median } from '../stream/goals.mjs'
import { wrapped } from '../stream/table.mjs'

/** @param {string[]} head @param {(string | number)[][]} rows */
export const table = (head, rows) =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')

/**
 * Groups measurements by their cell.
 * @param {{ cell: string }[]} measured
 */
export function byCell(measured) {
  const runs = Map.groupBy(measured, ({ cell }) => cell)
  const values = (cell, pick) => (runs.get(cell) ?? []).map(pick)
  return {
    /** The median of a cell. */
    middle: (cell, pick) => median(values(cell, pick)),
    /** Median, least and most, with so many decimals. */
    spread(cell, pick, decimals) {
      const all = values(cell, pick)
      const [middle, least, most] = [median(all), Math.min(...all), Math.max(...all)]
      return `${middle.toFixed(decimals)} (${least.toFixed(decimals)} to ${most.toFixed(decimals)})`
    },
  }
}

/** Joins the lines of each paragraph and breaks them where they are too long; tables and headings stay as they are. */
export const flowed = (text) => wrapped(text.replace(/([^\n|])\n *(?=[^\n|# -])/g, '$1 '))

export const signed = (value, decimals) => `${value < 0 ? '' : '+'}${value.toFixed(decimals)}`
export const mbPerSecond = ({ bytes, seconds }) => bytes / seconds / 1e6
/** Milliseconds of a part of a read, for each read of the device. */
export const perReadMs = (name) => (one) => one[name] / one.reads / 1000
