// Checks how the tree is written: widths, lengths, folders, names, imports, leftovers, and paths in documents.
// `node scripts/checks/tidy.mjs` checks; `--all RULE` also lists what the baseline has; `--shrink` removes from the
// baseline what is fixed.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { inRoot } from '../lib/paths.mjs'
import { asserts } from './tidy/asserts.mjs'
import { columns } from './tidy/columns.mjs'
import { consoleLines } from './tidy/console-lines.mjs'
import { documentPaths } from './tidy/document-paths.mjs'
import { folderSize, testNames, zigHeaders } from './tidy/files.mjs'
import { functionLength } from './tidy/function-length.mjs'
import { fileLength, leftovers, literalSpreads } from './tidy/leftovers.mjs'
import { Sources } from './tidy/sources.mjs'
import { zigBase } from './tidy/zig-base.mjs'
import { zigCycles, zigUnused } from './tidy/zig-imports.mjs'

/**
 * @typedef {object} Rule
 * @property {string} name in the baseline
 * @property {string} instead what to do; it ends each message
 * @property {(sources: Sources) => Found[]} find
 * @typedef {{ file: string, line?: number, what: string, count?: number }} Found count: 1 where it is missing
 */

/** @type {Rule[]} */
const rules = [
  columns,
  functionLength,
  folderSize,
  testNames,
  zigHeaders,
  zigCycles,
  zigUnused,
  zigBase,
  literalSpreads,
  asserts,
  fileLength,
  leftovers,
  documentPaths,
  consoleLines,
]
/** Per rule. */
const shownMax = 20
const baselineFile = inRoot('scripts/checks/tidy-baseline.json')

/**
 * What breaks a rule. The baseline has what broke it before there was the rule: a rule is broken only where there is
 * more of that in the whole tree, since files move.
 * @returns {string[]} one sentence each
 */
export function checkTidy() {
  const sources = new Sources()
  const baseline = readBaseline()
  return rules.flatMap((rule) => {
    const more = newIn(rule.find(sources), baseline[rule.name] ?? {})
    const left = more.length - shownMax
    const texts = more.slice(0, shownMax).map((one) => asText(rule, one))
    return left > 0 ? [...texts, `${rule.name}: ${left} more like these`] : texts
  })
}

function newIn(found, known) {
  const counts = countsOf(found)
  if (sumOf(counts) <= sumOf(known)) return []
  return found.filter(({ file }) => counts[file] > (known[file] ?? 0))
}

const sumOf = (counts) => Object.values(counts).reduce((sum, count) => sum + count, 0)

function countsOf(found) {
  const counts = {}
  for (const { file, count = 1 } of found) counts[file] = (counts[file] ?? 0) + count
  return counts
}

const asText = ({ instead }, { file, line, what }) => `${file}${line ? `:${line}` : ''}: ${what}; ${instead}`

/** @returns {Record<string, Record<string, number>>} how often a file breaks a rule, by rule and file */
function readBaseline() {
  return existsSync(baselineFile) ? JSON.parse(readFileSync(baselineFile, 'utf8')) : {}
}

/** Writes the baseline again with the current state, unless that has more. */
function shrink() {
  const sources = new Sources()
  const baseline = {}
  for (const rule of rules) {
    const counts = countsOf(rule.find(sources))
    const files = Object.keys(counts).toSorted()
    if (files.length > 0) baseline[rule.name] = Object.fromEntries(files.map((file) => [file, counts[file]]))
  }
  writeFileSync(baselineFile, `${JSON.stringify(baseline, null, 2)}\n`)
  for (const [name, counts] of Object.entries(baseline)) {
    process.stdout.write(`${name}: ${sumOf(counts)} in ${Object.keys(counts).length} files\n`)
  }
}

/** @param {string | undefined} name of one rule, or of none */
function listAll(name) {
  const sources = new Sources()
  for (const rule of rules.filter((rule) => name === undefined || rule.name === name))
    for (const one of rule.find(sources)) process.stdout.write(`${asText(rule, one)}\n`)
}

function main([option, name]) {
  if (option === '--all') return listAll(name)
  const problems = existsSync(baselineFile) ? checkTidy() : []
  if (problems.length === 0) return option === '--shrink' ? shrink() : undefined
  process.stdout.write(`${problems.join('\n')}\n${problems.length} problems\n`)
  process.exitCode = 1
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main(process.argv.slice(2))
