import { execFileSync } from 'node:child_process'
import path from 'node:path'
import { trackedFiles } from '../checks/tracked-files.mjs'
import { edgeSource, root } from '../lib/paths.mjs'
import { zigJobs } from '../lib/toolchain.mjs'
import { command, vitest } from './runners.mjs'
import { zigCounts, zigTestLimit } from './tally.mjs'

const zigSource = 'edge/streamer-zig/src/'
const nothing = { output: '', passed: 0, failed: 0, skipped: 0 }

/**
 * Returns the files that differ from the point where this branch left main, committed or not. On main itself those that
 * are not committed, or the last commit's.
 */
export function changedFiles() {
  const git = (...args) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
  const lines = (text) => text.split('\n').filter((line) => line !== '')
  const isKnown = (name) => lines(git('branch', '--all', '--list', name)).length > 0
  const main = ['main', 'origin/main'].find(isKnown) ?? 'HEAD'
  const left = git('merge-base', 'HEAD', main)
  const untracked = lines(git('ls-files', '--others', '--exclude-standard'))
  const isClean = git('status', '--porcelain') === ''
  const base = isClean && left === git('rev-parse', 'HEAD') ? 'HEAD~1' : left
  return [...lines(git('diff', '--name-only', base)), ...untracked]
}

/** Returns the unit tests of the folders in which something changed; a package's tests are one folder. */
export async function testChangedUnits(scratch, changed) {
  const folderOf = (file) => file.match(/^packages\/[^/]+\//)?.[0] ?? `${path.dirname(file)}/`
  const folders = new Set(changed.filter((file) => /\.(ts|tsx|prisma|sql|json)$/.test(file)).map(folderOf))
  const tests = trackedFiles(/^(apps|packages)\/[^/]+\/(src|test)\/.*\.test\.ts$/)
  const chosen = tests.filter((file) => folders.has(folderOf(file)))
  return chosen.length > 0 ? vitest(scratch, '.', chosen, {}) : nothing
}

/**
 * Runs the unit tests of the Zig modules in which something changed, after all Zig code was compiled, not optimised.
 */
export async function testChangedZig(zig, changed) {
  const zigFiles = changed.filter((file) => file.startsWith('edge/'))
  if (zigFiles.length === 0) return nothing
  const build = (...steps) =>
    command(zig, ['build', zigJobs, ...steps, '-Doptimize=debug', '-Dtest-optimize=debug'], edgeSource)
  const checked = await build('check')
  if (checked.failed > 0) return checked
  const steps = stepsOf(zigFiles, await build('--list-steps'))
  if (steps.length === 0) return checked
  const { output, failed } = await build(...steps, '--summary', 'all', ...zigTestLimit)
  return { output, ...zigCounts(output, failed) }
}

/** `core/boot/boot.zig` is tested by `test-core`; code without a test step was compiled. */
function stepsOf(files, { output }) {
  const modules = files.filter((file) => file.startsWith(zigSource)).map((file) => file.slice(zigSource.length))
  const names = new Set(modules.map((file) => `test-${file.split('/')[0]}`))
  return [...names].filter((name) => new RegExp(`^ +${name} `, 'm').test(output))
}
