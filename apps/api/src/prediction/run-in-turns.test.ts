import { expect, test } from 'vitest'
import { runInTurns } from './run-in-turns.ts'

test('others have a turn at each pause', async () => {
  let others = 0
  const seen: number[] = []
  function* work(): Generator<void, string> {
    for (let piece = 0; piece < 3; piece += 1) {
      seen.push(others)
      setImmediate(() => {
        others += 1
      })
      yield
    }
    return 'done'
  }
  expect(await runInTurns(work())).toBe('done')
  expect(seen).toEqual([0, 1, 2])
})
