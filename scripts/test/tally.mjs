import { readFileSync } from 'node:fs'
import path from 'node:path'
import { root } from '../lib/paths.mjs'

const slowestShown = 8

/** Sums of all layers; `npm test` prints them in its last line. */
export class Tally {
  passed = 0
  failed = 0
  skipped = 0
  reasons = []

  /** @param {{ passed: number, failed: number, skipped: number, reasons?: string[] }} counts */
  add(counts) {
    this.passed += counts.passed
    this.failed += counts.failed
    this.skipped += counts.skipped
    this.reasons.push(...(counts.reasons ?? []))
  }

  closingLine() {
    return `${this.passed} passed, ${this.failed} failed, ${this.skipped} skipped`
  }
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
  ).length
  return {
    passed: report.numPassedTests,
    failed: Math.max(report.numFailedTests + unread, exitCode === 0 ? 0 : 1),
    skipped: skipped.length,
    reasons: skipped.map(({ fullName }) => fullName),
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

/** Returns the counts from Playwright's JSON reporter. */
export function playwrightCounts(file, exitCode) {
  const report = readJson(file)
  if (!report) return oneCheck(false)
  const { expected, unexpected, flaky, skipped } = report.stats
  return {
    passed: expected,
    failed: Math.max(unexpected + flaky, exitCode === 0 ? 0 : 1),
    skipped,
    slowest: longest(report.suites.map((suite) => ({ name: suite.file, seconds: durationMs(suite) / 1000 }))),
  }
}

/** Returns all tests in a suite, including those of its inner suites. */
function durationMs({ specs, suites = [] }) {
  const results = specs.flatMap(({ tests }) => tests.flatMap((test) => test.results))
  return [...results.map(({ duration }) => duration), ...suites.map(durationMs)].reduce((sum, ms) => sum + ms, 0)
}

/** Returns the counts from the summary of `zig build test --summary all`. */
export function zigCounts(output, exitCode) {
  const total = output.match(/(\d+)\/(\d+) tests passed(?: \((\d+) skipped\))?/)
  if (!total) return oneCheck(false)
  const [passed, all] = [Number(total[1]), Number(total[2])]
  const skipped = Number(output.match(/tests passed[^\n]*?(\d+) skipped/)?.[1] ?? 0)
  return { passed, failed: Math.max(all - passed - skipped, exitCode === 0 ? 0 : 1), skipped }
}

function readJson(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return null
  }
}
