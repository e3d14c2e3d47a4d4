import { median } from '../stream/goals.mjs'
import { factors, nameOf } from './settings.mjs'
import { corrected, medianInterval, rankTest, smallestProbability } from './statistics.mjs'

const riskMax = 0.05
/** A cell that is faster than the recommended one by less than this is not worth a sentence. */
const noticeable = 0.95

/**
 * Compares the cells of a matrix with the first one, and the levels of each factor with its first one over all cells
 * that differ in nothing else. Probabilities are corrected for the number of comparisons of each of the two tables.
 * @param {{ levels: Record<string, string[]>, cells: import('./settings.mjs').Cell[] }} matrix
 * @param {{ cell: string, seconds: number }[]} measured
 * @param {number} seed
 */
export function judgeMatrix({ levels, cells }, measured, seed) {
  const of = new Map(cells.map(({ name }) => [name, []]))
  for (const { cell, seconds } of measured) of.get(cell)?.push(seconds)
  const first = of.get(cells[0].name)
  const tests = cells.slice(1).map(({ name }) => rankTest([{ one: first, other: of.get(name) }], seed))
  const probabilities = corrected(tests)
  const rows = cells.map(({ name }, index) => ({
    name,
    median: median(of.get(name)),
    ...medianInterval(of.get(name)),
    ratio: median(of.get(name)) / median(first),
    probability: index === 0 ? undefined : probabilities[index - 1],
  }))
  const effects = effectsOf({ levels, cells }, of, seed)
  return { rows, effects, recommended: recommend({ levels, cells }, { rows, effects, of, seed }) }
}

function effectsOf({ levels, cells }, of, seed) {
  const found = Object.entries(levels).flatMap(([factor, [usual, ...others]]) =>
    others.map((level) => {
      const strata = strataOf(cells, { factor, usual, level }).map(([one, other]) => ({
        one: of.get(one.name),
        other: of.get(other.name),
      }))
      const ratios = strata.map(({ one, other }) => Math.log(median(other) / median(one)))
      const ratio = Math.exp(ratios.reduce((sum, value) => sum + value, 0) / ratios.length)
      return { factor, level, against: usual, ratio, probability: rankTest(strata, seed) }
    }),
  )
  const probabilities = corrected(found.map(({ probability }) => probability))
  return found.map((effect, index) => ({ ...effect, probability: probabilities[index] }))
}

/** Pairs of cells that differ in this factor alone. */
function strataOf(cells, { factor, usual, level }) {
  return cells
    .filter(({ setting }) => setting[factor] === usual)
    .map((one) => [
      one,
      cells.find(({ setting }) =>
        Object.entries(setting).every(([name, value]) => value === (name === factor ? level : one.setting[name])),
      ),
    ])
}

/**
 * Takes of each factor the level that is faster than the first one beyond chance, and of several the fastest; of others
 * the first one.
 */
function recommend({ levels, cells }, { rows, effects, of, seed }) {
  const values = Object.fromEntries(
    Object.entries(levels).map(([factor, [usual]]) => {
      const clear = effects.filter((one) => one.factor === factor && one.ratio < 1 && one.probability <= riskMax)
      const [best] = clear.toSorted((a, b) => a.ratio - b.ratio)
      return [factor, best?.level ?? usual]
    }),
  )
  const chosen = rows.find(({ name }) => name === nameOf(values))
  const [fastest] = rows.toSorted((a, b) => a.median - b.median)
  const isOther = fastest.median < noticeable * chosen.median
  const rival = isOther
    ? { ...fastest, probability: rankTest([{ one: of.get(chosen.name), other: of.get(fastest.name) }], seed) }
    : undefined
  return { ...chosen, isFirst: chosen.name === cells[0].name, rival }
}

/** @param {object} result what `npm run bench -- field --matrix` writes into bench-results */
export function matrixMarkdown({ date, command, machine, matrix, repeat, judged, trace }) {
  const { rows, effects, recommended } = judged
  const [first] = rows
  return `# A matrix of boots

- ${date}, \`${command}\`
${machine.map((line) => `- ${line}`).join('\n')}
- ${trace}
- ${rows.length} cells, each measured ${repeat} times: ${repeat} rounds of all cells, each in another random order.
- Not varied: ${nameOf(usualBeside(matrix.levels))}. [What the factors
  are](../reference/field-experiments.md).

## Factors

Each level beside the first one of its factor, over all cells that differ in nothing else: the mean ratio of their
medians, and how probable ranks that differ as much are without a difference, corrected for ${effects.length}
comparisons.

| factor | level | beside | times as long | probability | |
|---|---|---|---|---|---|
${effects.map((one) => `| ${one.factor} | ${one.level} | ${one.against} | ${one.ratio.toFixed(3)} | ${probabilityText(one.probability)} | ${verdict(one)} |`).join('\n')}

## Cells

Seconds of a boot: the median, and an interval that covers the median of such boots with ${percent(first.coverage)}.
Each cell is compared with the first one, corrected for ${rows.length - 1} comparisons.

| cell | s | from | to | times the first | probability | |
|---|---|---|---|---|---|---|
${rows.map((one, index) => `| ${one.name} | ${one.median.toFixed(3)} | ${one.low.toFixed(3)} | ${one.high.toFixed(3)} | ${index === 0 ? '' : one.ratio.toFixed(3)} | ${index === 0 ? '' : probabilityText(one.probability)} | ${index === 0 ? 'first' : verdict(one)} |`).join('\n')}
${powerNote(rows.length - 1, repeat)}
## Recommendation

${recommendation(recommended, first)}
`
}

function usualBeside(levels) {
  const others = Object.entries(factors).filter(([name]) => !levels[name])
  return Object.fromEntries(others.map(([name, { usual }]) => [name, usual]))
}

function verdict({ ratio, probability }) {
  if (probability > riskMax) return 'could be chance'
  return ratio < 1 ? 'faster' : 'slower'
}

const probabilityText = (value) => (value < 0.001 ? '< 0.001' : value.toFixed(3))
const percent = (part) => `${(100 * part).toFixed(0)} %`

/** With few repetitions not even groups that do not overlap differ beyond chance. */
function powerNote(comparisons, repeat) {
  if (smallestProbability(repeat) * comparisons <= riskMax) return ''
  let needed = repeat
  while (smallestProbability(needed) * comparisons > riskMax) needed++
  return `
${repeat} repetitions of ${comparisons + 1} cells cannot show that one cell differs from the first: that takes at least
\`--repeat ${needed}\`. The factors, which are compared over several cells, need fewer.
`
}

function recommendation({ name, ratio, isFirst, rival }, first) {
  const chosen = isFirst
    ? `Stay with \`${name}\`: no level of any factor is faster than its first one beyond chance.`
    : `Take \`${name}\`: ${ratio.toFixed(2)} times as long as \`${first.name}\`. A factor has its first level there unless
another one is faster beyond chance.`
  if (!rival) return chosen
  const sure = rival.probability <= riskMax ? 'which chance alone hardly explains' : 'which may be chance'
  return `${chosen}

Factors may depend on each other: the fastest cell was \`${rival.name}\`, ${sure} (probability
${probabilityText(rival.probability)} beside the recommended cell, not corrected).`
}
