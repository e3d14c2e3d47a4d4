import { UserError } from '../lib/fail.mjs'

/**
 * Returns the cases that `--only` names, in their order: for each of its texts between commas the one of this name, or
 * else all whose names contain the text.
 * @param {string} bench
 * @param {string[]} names
 * @param {string} only empty: all of them
 */
export function casesNamed(bench, names, only) {
  const chosen = only.split(',').flatMap((text) => {
    const found = names.includes(text) ? [text] : names.filter((name) => name.includes(text))
    if (found.length === 0)
      throw new UserError(`the benchmark ${bench} has no case ${text}; there are: ${names.join(', ')}.`)
    return found
  })
  return names.filter((name) => chosen.includes(name))
}

/** @param {number[]} values @param {number} part 0 to 1 */
export function quantile(values, part) {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]
}
