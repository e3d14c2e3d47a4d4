import { readFileSync } from 'node:fs'
import path from 'node:path'
import { root } from '../lib/paths.mjs'

const slowestShown = 8
/** Of one layer, so that one in which everything fails leaves room for the others. */
const failuresShown = 8
const failureSizeMax = 300

/** Sums of all layers, and what failed; `npm test` prints them last. */
export class Tally {
  passed = 0
  failed = 0
  skipped = 0
  reasons = []
  /** @type {string[]} */
  #failures = []

  /**
   * @param {string} layer
   * @param {{ passed: number, failed: number, skipped: number, reasons?: string[], failures?: string[] }} counts
   * @param {string} output of the layer: if it has failed, and names no test, the end of it says why
   */
  add(layer, counts, output = '') {
    this.passed += counts.passed
    this.failed += counts.failed
    this.skipped += counts.skipped
    this.reasons.push(...(counts.reasons ?? []))
    if (counts.failed > 0) this.#addFailures(layer, counts, output)
  }

  #addFailures(layer, { failures = [] }, output) {
    const killed = output.match(killedPattern) ?? []
    const named = failures.length > 0 ? failures : lastLines(output).filter((line) => !killed.includes(line))
    const lines = [...killed, ...named.slice(0, failuresShown)]
    if (failures.length > failuresShown) lines.push(`and ${failures.length - failuresShown} more`)
    if (lines.length === 0) lines.push('without output')
    this.#failures.push(...lines.map((line) => `  ${layer}: ${oneLine(line).slice(0, failureSizeMax)}`))
  }

  /** Often only the end of the output is kept: it names each layer that failed, and its tests. */
  closingLines() {
    const counts = `${this.passed} passed, ${this.failed} failed, ${this.skipped} skipped`
    return this.#failures.length === 0 ? [counts] : ['Failed:', ...this.#failures, '', counts]
  }
}

/** As `capture` says it. */
const killedPattern = /^Killed: .* was not over after .*$/gm

const oneLine = (text) => withoutColours(text).replace(/\s+/g, ' ').trim()

// biome-ignore lint/suspicious/noControlCharactersInRegex: terminals' colours begin with one
const withoutColours = (text) => text.replace(/\u001b\[[\d;]*m/g, '')

function lastLines(output) {
  const lines = withoutColours(output).split('\n')
  return lines.filter((line) => line.trim() !== '').slice(-3)
}

/** A layer that is one check: it passed, or it failed. */
export const oneCheck = (ok) => ({ passed: ok ? 1 : 0, failed: ok ? 0 : 1, skipped: 0 })

/** Returns the counts from vitest's JSON reporter; an unreadable file counts as one failure. */
export function vitestCounts(file, exitCode) {
  const report = readJson(file)
  if (!report) return oneCheck(false)
  const skipped = report.testResults.flatMap(({ assertionResults }) =>
    assertionResults.filter(({ status }) => status === 'skipped' || status === 'pending' || status === 'todo'),
  )
  const unread = report.testResults.filter(
    (result) => result.status === 'failed' && !result.assertionResults.some(isFailed),
  )
  return {
    passed: report.numPassedTests,
    failed: Math.max(report.numFailedTests + unread.length, exitCode === 0 ? 0 : 1),
    skipped: skipped.length,
    reasons: skipped.map(({ fullName }) => fullName),
    failures: [
      ...report.testResults.flatMap(({ name, assertionResults }) =>
        assertionResults
          .filter(isFailed)
          .map(({ fullName, failureMessages }) => failure(path.relative(root, name), fullName, failureMessages[0])),
      ),
      ...unread.map(({ name, message }) => failure(path.relative(root, name), 'before its tests', message)),
    ],
    slowest: longest(
      report.testResults.map(({ name, startTime, endTime }) => ({
        name: path.relative(root, name),
        seconds: (endTime - startTime) / 1000,
      })),
    ),
  }
}

/** The first things to examine in a layer that takes too long. */
const longest = (files) => files.toSorted((a, b) => b.seconds - a.seconds).slice(0, slowestShown)

const isFailed = ({ status }) => status === 'failed'

/** The first line of an error is its sentence. */
const failure = (file, test, message = '') => `${file} > ${test}: ${message.split('\n')[0]}`

/** Returns the counts from Playwright's JSON reporter. */
export function playwrightCounts(file, exitCode) {
  const report = readJson(file)
  if (!report) return oneCheck(false)
  const { expected, unexpected, flaky, skipped } = report.stats
  return {
    passed: expected,
    failed: Math.max(unexpected + flaky, exitCode === 0 ? 0 : 1),
    skipped,
    failures: [
      ...report.suites.flatMap(failedSpecs),
      ...(report.errors ?? []).map(({ message }) => failure('playwright', 'outside of tests', message)),
    ],
    slowest: longest(report.suites.map((suite) => ({ name: suite.file, seconds: durationMs(suite) / 1000 }))),
  }
}

/** A test that passed only at its second run has failed, too. */
function failedSpecs({ specs, suites = [] }) {
  const failed = specs.flatMap(({ file, title, tests }) => {
    const results = tests.filter(({ status }) => status !== 'expected' && status !== 'skipped')
    return results.map((test) => failure(file, title, test.results.find(({ error }) => error)?.error.message))
  })
  return [...failed, ...suites.flatMap(failedSpecs)]
}

/** Returns all tests in a suite, including those of its inner suites. */
function durationMs({ specs, suites = [] }) {
  const results = specs.flatMap(({ tests }) => tests.flatMap((test) => test.results))
  return [...results.map(({ duration }) => duration), ...suites.map(durationMs)].reduce((sum, ms) => sum + ms, 0)
}

/** Returns the counts from the summary of `zig build test --summary all`, and what it says of each failed test. */
export function zigCounts(output, exitCode) {
  const failures = [...output.matchAll(zigFailure)].map(([, place = '', sentence]) => place + sentence)
  const total = output.match(/(\d+)\/(\d+) tests passed(?: \((\d+) skipped\))?/)
  if (!total) return { ...oneCheck(false), failures }
  const [passed, all] = [Number(total[1]), Number(total[2])]
  const skipped = Number(output.match(/tests passed[^\n]*?(\d+) skipped/)?.[1] ?? 0)
  return { passed, failed: Math.max(all - passed - skipped, exitCode === 0 ? 0 : 1), skipped, failures }
}

/**
 * A test that hangs is ended, and named. The longest takes some seconds of a processor, for which it may have to wait
 * until nobody else wants one.
 */
export const zigTestLimit = ['--test-timeout', '2400s']

/** A test that failed, leaked, hangs or ended its process; or code that does not compile. */
const zigFailure = /^(\S+:\d+:\d+: )?error: (.*?)(?: with stderr)?:?$/gm

function readJson(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return null
  }
}
