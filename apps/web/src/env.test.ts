import { afterEach, expect, test } from 'vitest'
import { firstDataLimitMs } from './env.ts'

afterEach(() => {
  delete process.env.FIRST_DATA_LIMIT_MS
})

test('a page waits one second for its data, or as long as a setting says', () => {
  expect(firstDataLimitMs()).toBe(1_000)
  process.env.FIRST_DATA_LIMIT_MS = '250'
  expect(firstDataLimitMs()).toBe(250)
})

test('a limit that is no number of ms, or too long, is refused with what to set', () => {
  for (const text of ['0', '-1', '1.5', 'soon', '60001']) {
    process.env.FIRST_DATA_LIMIT_MS = text
    expect(firstDataLimitMs).toThrow(`FIRST_DATA_LIMIT_MS is "${text}"; set a whole number of ms from 1 to 60000.`)
  }
})
