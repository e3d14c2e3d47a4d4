import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { capture } from '../../scripts/lib/run.mjs'
import { scratchDirectory } from '../lib/lab/programs.ts'

const scratch = scratchDirectory()
afterAll(() => scratch.remove())

test('a test run that is ended in the middle leaves none of its programs behind', () => {
  const lock = path.join(scratch.path, 'lock')
  const run = `
    const { RunningProcess } = await import(${JSON.stringify(new URL('../lib/lab/running-process.ts', import.meta.url))})
    const holder = new RunningProcess('bash', ['-c', 'exec 9>${lock}; flock 9; echo held; exec sleep 600'])
    await holder.waitFor(/held/)
    process.exit(3)`
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', run], {
    encoding: 'utf8',
  })
  expect(status, stderr).toBe(3)
  // It is released only when the program that holds it ends.
  expect(spawnSync('flock', ['--wait', '10', lock, 'true']).status).toBe(0)
})

test('a command that takes too long is killed, and its output ends with that', async () => {
  const { code, output } = await capture('sh', ['-c', 'echo begun; exec sleep 600'], { timeoutMs: 500 })
  expect(code).toBeNull()
  expect(output).toBe('begun\n\nKilled: sh was not over after 0.5 s.\n')
})
