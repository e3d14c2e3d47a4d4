import { edgeSource, inRoot } from '../lib/paths.mjs'
import { zigJobs } from '../lib/toolchain.mjs'
import { idling, patient } from './runners.mjs'
import { oneCheck, zigCounts, zigTestLimit } from './tally.mjs'

/** Cases for each parser, and simulated boots: enough to find faults of a change, few enough for every run. */
const fuzzCases = 20_000
const simulatedSeeds = 6
const storeOptions = (sequences, operations) =>
  `-- --seed 1 --jobs 2 --flips --mutants --sequences ${sequences} --operations ${operations}`.split(' ')
const streamOptions = (packets) => `-- --seed 1 --jobs 2 --mutants --packets ${packets}`.split(' ')
/**
 * Each run must find every mutant. The slowest of the store's is found after 110,607 operations; in addition, the store
 * without a mutant runs 18 times as many.
 */
const storeOperations = 2_000_000
const streamPackets = 3_000_000
/** In `npm run test:all`. */
const storeOperationsLong = 10_000_000
const streamPacketsLong = 10_000_000
const fuzzCasesLong = 1_000_000
const simulatedSeedsLong = 200

/**
 * A sample of mistakes, half of which must be found: a sample this small proves little. The quoted score is of a larger
 * one.
 */
const mutation = ['--seed', '1', '--count', '60', '--floor', '50']

async function checkMutation() {
  const { code, output } = await patient(process.execPath, [inRoot('scripts/mutation.mjs'), ...mutation])
  return { output, ...oneCheck(code === 0) }
}

const seed = ['--', '--seed', '1']
/**
 * Both modes have the same checks. Unoptimized programs are built in a tenth of the time, and take several times as
 * long: simulations win by the other mode.
 */
const quick = 'debug'
const long = 'safe'

/**
 * All that only computes, two at a time, because most of it keeps one processor busy. Its place is beside emulated
 * machines, which leave one: next to the other layers it would take from them.
 */
export async function zigTrack(layer, zig) {
  await Promise.all([testHeavyModules(layer, zig), simulate(layer, zig)])
}

const buildBy =
  (zig) =>
  (run, step, mode, ...args) =>
    run(zig, ['build', zigJobs, step, `-Dtest-optimize=${mode}`, ...args], { cwd: edgeSource })

async function zigTests(zig, run, step, mode) {
  const { code, output } = await buildBy(zig)(run, step, mode, '--summary', 'all', ...zigTestLimit)
  return { output, ...zigCounts(output, code) }
}

/** Some of these have clocks. */
export function testLightModules(layer, zig) {
  return layer('zig-test', 150, () => zigTests(zig, patient, 'test-light', quick))
}

async function testHeavyModules(layer, zig) {
  await layer('zig-test-heavy', 220, () => zigTests(zig, idling, 'test-heavy', long))
  await layer('zig-arm64', 40, async () => {
    const { code, output } = await buildBy(zig)(idling, 'check-programs', quick, '-Darch=aarch64')
    return { output, ...oneCheck(code === 0) }
  })
  await layer.long('zig-test-safe', 300, () => zigTests(zig, patient, 'test', long))
  await layer.long('mutation', 400, checkMutation)
}

async function simulate(layer, zig) {
  const build = (...args) => buildBy(zig)(idling, ...args)
  const checked =
    (step, ...args) =>
    async () => {
      const { code, output } = await build(step, long, ...args)
      return { output, ...oneCheck(code === 0) }
    }
  /** The command that must fail, with this message. */
  const caught =
    (words, step, ...args) =>
    async () => {
      const { code, output } = await build(step, long, ...args)
      return {
        output: `the canary was not caught\n${output}`,
        ...oneCheck(code !== 0 && output.includes(words)),
      }
    }
  await layer('simulation', 90, checked('sim', ...seed, '--seeds', String(simulatedSeeds)))
  const manySeeds = ['--', '--seed', '1000', '--seeds', String(simulatedSeedsLong)]
  await layer.long('simulation-long', 600, checked('sim', ...manySeeds))
  await layer.long('simulation-reports', 120, checked('sim', ...seed, '--reports'))
  await layer('simulation-mutants', 60, checked('sim', ...seed, '--self-test'))
  await layer('simulation-canary', 10, caught('FAILED: canary', 'sim', ...seed, '--canary'))
  await layer('store-sim', 60, checked('store-sim', ...storeOptions(5, storeOperations)))
  await layer.long('store-sim-long', 240, checked('store-sim', ...storeOptions(6, storeOperationsLong)))
  await layer('stream-sim', 60, checked('stream-sim', ...streamOptions(streamPackets)))
  await layer.long('stream-sim-long', 180, checked('stream-sim', ...streamOptions(streamPacketsLong)))
  await layer('stream-sim-canary', 20, caught('FAILED: canary', 'stream-sim', ...seed, '--canary'))
  await layer('fuzz', 60, checked('fuzz', ...seed, '--cases', String(fuzzCases)))
  const manyCases = ['--', '--seed', '2', '--cases', String(fuzzCasesLong)]
  await layer.long('fuzz-long', 900, checked('fuzz', ...manyCases))
  await layer('fuzz-canary', 60, caught('violated:', 'fuzz', ...seed, '--cases', '2000', '--canary'))
}
