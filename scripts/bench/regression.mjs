import { slowerNeeded, trialBoots } from '../../apps/api/src/finding/detect/class-watch.ts'
import { drifts, noises, setBoots, watchSet } from '../../apps/api/test/seeded/boot-sets.ts'
import { say } from '../lib/progress.mjs'
import { casesNamed } from './cases.mjs'
import { keepResult } from './results.mjs'

/** Seeded: the same program finds the same, on every machine. */
const causeSets = 200
const quietSets = 1_000
const affectedMax = 50
const shareGoal = 0.95

const causes = [
  { name: 'version', cause: { factor: 'version', slower: 0.1, failing: 0 } },
  { name: 'edge release', cause: { factor: 'edge_release', slower: 0.1, failing: 0 } },
  { name: 'setting', cause: { factor: 'setting', slower: 0.1, failing: 0 } },
  { name: 'new segment', cause: { factor: 'segment', slower: 0.1, failing: 0, ofSegment: 'new' } },
]
/** Beyond the goal. */
const otherCauses = [
  { name: 'known segment, at a time that nobody knows', cause: { ...causes[3].cause, ofSegment: 'known' } },
  { name: 'version that is 5 % slower', cause: { ...causes[0].cause, slower: 0.05 } },
  { name: 'version that is 20 % slower', cause: { ...causes[0].cause, slower: 0.2 } },
  { name: 'version of which 20 % more boots fail', cause: { ...causes[0].cause, slower: 0, failing: 0.2 } },
]

/** @param {{ only: string, write: boolean }} options */
export async function benchRegression({ only, write }) {
  const names = casesNamed('regression', ['causes', 'quiet'], only)
  const found = names.includes('causes') ? measureCauses() : []
  const quiet = names.includes('quiet') ? measureQuiet() : []
  const result = { date: new Date().toISOString(), found, quiet }
  const text = tableOf(result)
  process.stdout.write(`${text}\n`)
  if (write && names.length === 2) keepResult('regression', result, text)
  else if (write) say('Not written: only a run of all cases is.')
}

function measureCauses() {
  const rows = []
  for (const noise of noises)
    for (const deviceSpread of [0, 0.1]) {
      // The 200 causes of the goal are of all four kinds.
      const goal = rowOf({ noise, deviceSpread }, { name: 'all four', of: causes, sets: causeSets })
      rows.push(
        goal,
        ...causes.map((one) => rowOf({ noise, deviceSpread }, { name: one.name, of: [one], sets: causeSets })),
      )
    }
  for (const one of otherCauses)
    rows.push(rowOf({ noise: 'lognormal', deviceSpread: 0 }, { name: one.name, of: [one], sets: causeSets }))
  rows.push(rowOf(office, { name: 'all four', of: causes, sets: causeSets }))
  return rows
}

/** Boots as the demo has them, on days with cold mornings. */
const office = { noise: 'office', drift: 'office', deviceSpread: 0.1 }

function rowOf(variant, { name, of, sets }) {
  say(`${sets} causes: ${name}, ${wordsOf(variant)}`)
  const affected = []
  let right = 0
  for (let seed = 1; seed <= sets; seed += 1) {
    const { cause } = of[seed % of.length]
    const { found, affected: count } = watchSet({ seed, drift: 'none', ...variant, cause })
    if (!found || count > affectedMax) continue
    affected.push(count)
    if (found.factor === cause.factor) right += 1
  }
  affected.sort((a, b) => a - b)
  return { ...variant, name, sets, found: affected.length, right, median: affected[affected.length >> 1] ?? null }
}

function measureQuiet() {
  const variants = [
    ...noises.flatMap((noise) => [0, 0.1].map((deviceSpread) => ({ noise, drift: 'none', deviceSpread }))),
    ...drifts
      .filter((drift) => drift !== 'none' && drift !== 'office')
      .map((drift) => ({ noise: 'lognormal', drift, deviceSpread: 0 })),
    office,
  ]
  return variants.map((variant) => {
    say(`${quietSets} quiet sets: ${wordsOf(variant)}, ${variant.drift}`)
    let alarmed = 0
    for (let seed = 1; seed <= quietSets; seed += 1)
      if (watchSet({ seed: quietSeed + seed, ...variant, cause: null }).falseAlarms.length > 0) alarmed += 1
    return { ...variant, sets: quietSets, alarmed }
  })
}
/** Other sets than those with causes. */
const quietSeed = 1_000_000

const wordsOf = ({ noise, deviceSpread }) =>
  `${noise}, ${deviceSpread === 0 ? 'equal devices' : `devices that differ by ${100 * deviceSpread} %`}`

const driftWords = {
  none: 'none',
  trend: '5 % slower over the set, steadily',
  daily: '2 % slower and faster in turns, every 100 boots',
  days: 'each 50 boots have a level of their own, by 2 % (standard deviation)',
  storms: '20 of each 100 boots are 15 % slower together',
  office: 'of each 100 boots the first 15 are up to 60 % slower, the middle ones 2 %, and days differ by 1 %',
}

function tableOf({ date, found, quiet }) {
  const percent = (part, whole) => `${((100 * part) / whole).toFixed(1)} %`
  const goal = found.find(
    ({ name, noise, deviceSpread }) => name === 'all four' && noise === 'lognormal' && !deviceSpread,
  )
  const still = quiet.filter(({ drift }) => drift === 'none')
  const drifting = quiet.filter(({ drift }) => drift !== 'none')
  const reached = (is) => (is ? '**Reached.**' : '**Missed.**')
  const quietGoal = (sets) => (sets.length > 0 ? reached(sets.every(({ alarmed }) => alarmed <= 1)) : 'not measured.')
  return `# Causes of slower boots

${date}. Command: \`npm run bench -- regression\`. Seeded: another machine finds the same.

Each set has ${setBoots} boots of 40 devices in 4 segments, whose times vary by 10 % (CV), of which 2 % fail, with about
eight changes of versions, releases and settings. A cause begins after 500 to 700 boots and makes boots 10 % slower. It
counts as found if it is within ${affectedMax} boots that it affects, including those that fail. A trial looks at
${trialBoots} boots and needs a sum of scores of ${slowerNeeded(false).toFixed(1)}, of a segment that was there before
${slowerNeeded(true).toFixed(1)}. [What findings assume](../reference/findings.md).

| times | cause | sets | found within ${affectedMax} boots | of these, by the right name | affected boots until found (median) |
| --- | --- | --- | --- | --- | --- |
${found
  .map(
    (row) =>
      `| ${wordsOf(row)} | ${row.name} | ${row.sets} | ${percent(row.found, row.sets)} | ${row.found ? percent(row.right, row.found) : '-'} | ${row.median ?? '-'} |`,
  )
  .join('\n')}

Quiet sets have no cause. They are looked at after every boot.

| times | drift that all boots have in common | sets | sets with a false alarm |
| --- | --- | --- | --- |
${quiet.map((row) => `| ${wordsOf(row)} | ${driftWords[row.drift]} | ${row.sets} | ${row.alarmed} |`).join('\n')}

- At least 95 % of 200 seeded causes are found within 50 affected boots (lognormal, equal devices): ${goal ? reached(goal.found >= shareGoal * goal.sets) : 'not measured.'}
- At most 1 of 1,000 quiet sets has a false alarm, without drift, for each kind of times: ${quietGoal(still)}
- The same for each kind of drift: ${quietGoal(drifting)}
`
}
