import { UserError } from '../lib/fail.mjs'

/**
 * Returns the cases that `--only` names: the one of this name, or else all whose names contain the text.
 * @param {string} bench
 * @param {string[]} names
 * @param {string} only empty: all of them
 */
export function casesNamed(bench, names, only) {
  const chosen = names.includes(only) ? [only] : names.filter((name) => name.includes(only))
  if (chosen.length === 0)
    throw new UserError(`the benchmark ${bench} has no case ${only}; there are: ${names.join(', ')}.`)
  return chosen
}

/** @param {number[]} values @param {number} part 0 to 1 */
export function quantile(values, part) {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]
}
