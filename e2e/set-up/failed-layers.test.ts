import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { inRoot } from '../../scripts/lib/paths.mjs'
import { capture } from '../../scripts/lib/run.mjs'
import { oneCheck, playwrightCounts, Tally, vitestCounts, zigCounts } from '../../scripts/test/tally.mjs'
import { scratchDirectory } from '../lib/lab/programs.ts'

const scratch = scratchDirectory()
afterAll(() => scratch.remove())

const buildZig = `
const std = @import("std");
pub fn build(b: *std.Build) void {
    const root = b.createModule(.{ .root_source_file = b.path("some.zig"), .target = b.graph.host, .optimize = .debug });
    const tests = b.addTest(.{ .root_module = root });
    b.step("test", "some tests").dependOn(&b.addRunArtifact(tests).step);
}`
const someZig = `
const std = @import("std");
test "passes" {}
test "is wrong" { try std.testing.expectEqual(1, 2); }
test "hangs" { while (true) std.Thread.yield() catch {}; }
test "crashes" { @panic("oh"); }
test "leaks" { _ = try std.testing.allocator.create(u32); }`

/** A folder of its own with these files. */
function folder(name: string, files: Record<string, string>): string {
  const directory = path.join(scratch.path, name)
  mkdirSync(directory)
  for (const [file, text] of Object.entries(files)) writeFileSync(path.join(directory, file), text)
  return directory
}

describe('npm test names at its end what failed', () => {
  test('each test of a Zig program, and one that hangs', async () => {
    const cwd = folder('zig', { 'build.zig': buildZig, 'some.zig': someZig })
    const zig = inRoot('.toolchain/zig/ziglang/zig')
    const { code, output } = await capture(zig, ['build', 'test', '--summary', 'all', '--test-timeout', '2s'], { cwd })
    const counts = zigCounts(output, code)
    const tally = new Tally()
    tally.add('zig-test', counts, output)
    expect(tally.closingLines().map((line) => line.replace(/[\d.]+s$/, 'N s'))).toEqual([
      'Failed:',
      "  zig-test: 'some.test.is wrong' failed",
      "  zig-test: 'some.test.hangs' timed out after N s",
      "  zig-test: 'some.test.crashes' terminated with signal ABRT",
      "  zig-test: 'some.test.leaks' leaked 1 allocations",
      '',
      // The one that leaks has passed.
      '2 passed, 3 failed, 0 skipped',
    ])
  })

  test('each test of vitest, and a file that cannot be read', async () => {
    const root = folder('vitest', {
      'one.test.mjs': `
        import { expect, test } from ${JSON.stringify(import.meta.resolve('vitest'))}
        test('is wrong', () => expect(1).toBe(2))
        test('passes', () => {})`,
      'two.test.mjs': `throw new Error('not to be read')`,
    })
    const file = path.join(root, 'report.json')
    const args = ['run', '--root', root, '--reporter=json', `--outputFile=${file}`]
    const { code, output } = await capture(inRoot('node_modules/.bin/vitest'), args, { cwd: root })
    const tally = new Tally()
    tally.add('services', vitestCounts(file, code), output)
    expect(tally.closingLines().map((line) => line.replace(/: \S*\/vitest\//, ': '))).toEqual([
      'Failed:',
      '  services: one.test.mjs > is wrong: AssertionError: expected 1 to be 2 // Object.is equality',
      '  services: two.test.mjs > before its tests: not to be read',
      '',
      '1 passed, 2 failed, 0 skipped',
    ])
  })

  test('each test in a browser', async () => {
    const cwd = folder('playwright', {
      'one.spec.mjs': `
        import { expect, test } from ${JSON.stringify(import.meta.resolve('@playwright/test'))}
        test.describe('a page', () => {
          test('is wrong', () => expect(1).toBe(2))
          test('passes', () => {})
        })`,
    })
    const file = path.join(cwd, 'report.json')
    const env = { PLAYWRIGHT_JSON_OUTPUT_NAME: file }
    const program = inRoot('node_modules/.bin/playwright')
    const { code, output } = await capture(program, ['test', '--reporter=json'], { cwd, env })
    const tally = new Tally()
    tally.add('browser', playwrightCounts(file, code), output)
    expect(tally.closingLines()).toEqual([
      'Failed:',
      '  browser: one.spec.mjs > is wrong: Error: expect(received).toBe(expected) // Object.is equality',
      '',
      '1 passed, 1 failed, 0 skipped',
    ])
  })

  test('a layer that was killed at its limit, with what it had started and its last lines', async () => {
    const lock = path.join(scratch.path, 'lock')
    const script = `exec 9>${lock}; flock 9; sleep 600 & echo begun; wait`
    const { code, output } = await capture('bash', ['-c', script], { timeoutMs: 500 })
    const tally = new Tally()
    tally.add('simulation', oneCheck(code === 0), output)
    expect(tally.closingLines()).toEqual([
      'Failed:',
      '  simulation: Killed: bash was not over after 0.5 s.',
      '  simulation: begun',
      '',
      '0 passed, 1 failed, 0 skipped',
    ])
    // It is released only when the program that inherited it ends.
    expect(spawnSync('flock', ['--wait', '10', lock, 'true']).status).toBe(0)
  })

  test('in a bounded number of lines, none of them long', () => {
    const tally = new Tally()
    const failures = Array.from({ length: 500 }, (_, index) => `test ${index} ${'x'.repeat(1000)}`)
    tally.add('services', { passed: 7, failed: 500, skipped: 0, failures })
    tally.add('reports', oneCheck(false), '')
    const lines = tally.closingLines()
    expect(lines.slice(-5)).toEqual([
      expect.stringMatching(/^ {2}services: test 7 x+$/),
      '  services: and 492 more',
      '  reports: without output',
      '',
      '7 passed, 501 failed, 0 skipped',
    ])
    expect(lines.length).toBe(13)
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(320)
  })
})
