import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { UserError } from '../lib/fail.mjs'
import { withProcessorTime } from '../lib/processor-time.mjs'
import { say } from '../lib/progress.mjs'
import { ensureZig } from '../lib/toolchain.mjs'
import { buildMutants, mutationFolder } from './build.mjs'
import { runMutants } from './run.mjs'
import { describe, scoreOf, tableOf, withAccepted } from './score.mjs'

const usage = `Usage: npm run mutation -- [options]

Makes small mistakes (mutants) in core, agent and store of the edge, many in one build, and runs the unit tests and the
simulations that reach each one. Prints a table of those that were found, and each one that was not.

  --seed N       draws other mutants (1)
  --count N      how many (100); 0: all
  --only PATHS   of these files and folders of edge/streamer-zig/src, separated by commas
  --ids LIST     only these, separated by commas; the numbers are those of the same sources
  --jobs N       processes side by side (2)
  --json FILE    keeps every verdict (edge/streamer-zig/.zig-cache/mutation/verdicts.json)
  --floor N      ends with exit code 1 below this score, in percent (0)
  --help         this text

Example: npm run mutation -- --seed 7 --count 50 --only core/boot,agent/admission.zig

Mutants that no test can find, and tuning constants, are named in edge/streamer-zig/src/mutation/accepted.json.
`

/** Runs the tests on mutants; returns the exit code. */
export async function mutation(argv) {
  const options = readOptions(argv)
  if (options.help) {
    process.stdout.write(usage)
    return 0
  }
  const { result, processorSeconds } = await withProcessorTime(() => measure(options))
  writeFileSync(options.json, JSON.stringify({ ...options, processorSeconds, ...result }, null, 1))
  const { refused, mutants } = result
  process.stdout.write(`${tableOf(mutants)}\n`)
  for (const mutant of mutants) if (mutant.verdict !== 'killed') process.stdout.write(`${describe(mutant)}\n`)
  const score = scoreOf(mutants)
  say(
    `mutation: ${score.killed} of ${score.counted} found (${score.percent.toFixed(1)} %), ${score.accepted} accepted by name, ${refused} did not compile; seed ${options.seed}; processor ${processorSeconds.toFixed(0)} s; ${options.json}`,
  )
  return score.percent < options.floor ? 1 : 0
}

/** @returns {Promise<{ refused: number, mutants: object[] }>} each mutant with its verdict */
export async function measure({ seed, count, only, ids, jobs }) {
  const zig = await ensureZig()
  const built = await buildMutants(zig, { seed, count, only, ids })
  const mutants = await runMutants(built, jobs)
  return { refused: built.refused, mutants: withAccepted(mutants) }
}

function readOptions(argv) {
  let values
  try {
    const text = { type: 'string' }
    const options = { seed: text, count: text, only: text, ids: text, jobs: text, json: text, floor: text }
    values = parseArgs({ args: argv, options: { ...options, help: { type: 'boolean', default: false } } }).values
  } catch (error) {
    throw new UserError(`${error.message}\n\n${usage}`)
  }
  return {
    help: values.help,
    seed: wholeNumber('--seed', values.seed ?? '1'),
    count: wholeNumber('--count', values.count ?? '100'),
    only: values.only ?? '',
    ids: values.ids ?? '',
    jobs: wholeNumber('--jobs', values.jobs ?? '2'),
    json: path.resolve(values.json ?? path.join(mutationFolder, 'verdicts.json')),
    floor: wholeNumber('--floor', values.floor ?? '0'),
  }
}

function wholeNumber(name, text) {
  if (!/^\d{1,9}$/.test(text)) throw new UserError(`${name} is followed by a whole number.`)
  return Number(text)
}
