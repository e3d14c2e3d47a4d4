import path from 'node:path'
import { inRoot, root } from '../lib/paths.mjs'
import { capture } from '../lib/run.mjs'
import { oneCheck, playwrightCounts, vitestCounts } from './tally.mjs'

// Programs that run tests: each returns its output and its counts.

export async function turboCheck(task, run) {
  const { code, output } = await turbo(task, run)
  return { output, ...oneCheck(code === 0) }
}

export function turbo(task, run = capture) {
  const args = ['run', task, '--output-logs=errors-only', '--no-update-notifier']
  return run(inRoot('node_modules/.bin/turbo'), args, { cwd: root })
}

/**
 * For what only computes: it gets a tenth of a contended processor, so that it takes little from tests with clocks, and
 * yet no test of it starves. Its limit is one that a busy machine does not reach.
 */
export function patient(program, args, options) {
  return capture('nice', ['-n', '10', program, ...args], { ...options, timeoutMs: 4_800_000 })
}

/**
 * For what only computes, however late: it gets what nobody else wants, gives way at once, and so may run beside
 * emulated machines. Nothing of it may look at a clock: it may stand still for minutes.
 */
export function idling(program, args, options) {
  return capture('chrt', ['--idle', '0', program, ...args], { ...options, timeoutMs: 4_800_000 })
}

/** For long layers of whole machines: beside other work they may take three times as long as alone. */
export function unhurried(program, args, options) {
  return capture(program, args, { ...options, timeoutMs: 5_400_000 })
}

/**
 * In a network namespace that has only a loopback device, whose packets tests may lose, and in a mount namespace, whose
 * file systems end with it.
 */
export function inOwnNetwork(program, args, options) {
  const env = { ...options.env, BOOTFARM_OWN_NETWORK: '1' }
  const start = 'ip link set lo up && exec "$0" "$@"'
  return unhurried('unshare', ['--net', '--mount', 'sh', '-c', start, program, ...args], { ...options, env })
}

/** Gets a third of a contended processor, enough for tests with time limits, and so takes up to three times as long. */
export function yielding(program, args, options) {
  return capture('nice', ['-n', '3', program, ...args], { ...options, timeoutMs: 4_800_000 })
}

export async function problems(found) {
  return { output: found.join('\n'), ...oneCheck(found.length === 0) }
}

export async function command(program, args, cwd) {
  const { code, output } = await capture(program, args, { cwd })
  return { output, ...oneCheck(code === 0) }
}

export async function vitest(scratch, directory, filters, env, options = [], run = capture) {
  const file = path.join(scratch, `vitest-${directory === '.' ? 'root' : filters.join('-').replaceAll('/', '')}.json`)
  const args = ['run', ...filters, ...options, '--reporter=default', '--reporter=json', `--outputFile.json=${file}`]
  const { code, output } = await run(inRoot('node_modules/.bin/vitest'), args, {
    cwd: inRoot(directory),
    env,
  })
  return { output, ...vitestCounts(file, code) }
}

export async function playwright(scratch, env, project, run = capture) {
  const file = path.join(scratch, `playwright-${project}.json`)
  const { code, output } = await run(
    inRoot('node_modules/.bin/playwright'),
    ['test', `--project=${project}`, '--reporter=list,json'],
    {
      cwd: inRoot('e2e'),
      env: { ...env, BOOTFARM_BROWSER_RUN: project, PLAYWRIGHT_JSON_OUTPUT_NAME: file },
    },
  )
  return { output, ...playwrightCounts(file, code) }
}
