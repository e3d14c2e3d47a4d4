import { expect, test } from 'vitest'
import { newAccount } from './load.ts'
import { parseUpdateSoakOptions, updateSoakDefaults } from './options.ts'
import type { UpdateSoakResult } from './soak.ts'
import { asMarkdown, problemsOf } from './table.ts'

test('options are read, and each wrong one is named', () => {
  expect(parseUpdateSoakOptions([])).toEqual(updateSoakDefaults)
  expect(parseUpdateSoakOptions(['--updates', '10', '--devices', '50', '--write'])).toEqual({
    updates: 10,
    devices: 50,
    write: true,
  })
  for (const [args, message] of [
    [['--updates', '0'], /--updates needs a whole number from 1 to 1000/],
    [['--devices'], /--devices needs a whole number/],
    [['--for', '3'], /--for is not an option of this soak/],
  ] as const)
    expect(() => parseUpdateSoakOptions([...args])).toThrow(message)
})

test('whatever is lost, wrong or beyond its limit is a problem, and stands in the table', () => {
  const options = { updates: 10, devices: 50, write: false }
  const account = { ...newAccount(), ready: 50, reads: 2000, writes: 100, stallMs: 80 }
  const good: UpdateSoakResult = {
    minutes: 5,
    updates: 10,
    left: 1,
    quiet: account,
    updating: { ...account, stallMs: 280 },
    readyReported: 100,
    reportsLost: 0,
  }
  expect(problemsOf(good, options)).toEqual([])
  const cases: [Partial<UpdateSoakResult>, RegExp][] = [
    [{ reportsLost: 2 }, /2 reports were declared lost/],
    [{ readyReported: 99 }, /100 devices became ready, and 99 are reported/],
    [{ updates: 9 }, /only 9 of 10 updates/],
    [{ updating: { ...account, stallMs: 281 } }, /201 ms above/],
    [{ updating: { ...account, errors: ['read 3: other bytes'] } }, /read 3: other bytes/],
    [{ updating: { ...account, writes: 0 } }, /nothing was tried/],
  ]
  for (const [change, problem] of cases) {
    const bad = { ...good, ...change }
    expect(problemsOf(bad, options).join()).toMatch(problem)
    expect(asMarkdown(bad, { options, date: '2026-11-27T04:00:00.000Z', processors: 2 })).toMatch(problem)
  }
})
