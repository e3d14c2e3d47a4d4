import { expect, test } from 'vitest'
import { type Account, longestIncreaseMs, newAccount } from './account.ts'
import { parseUpdateSoakOptions, updateSoakDefaults } from './options.ts'
import type { UpdateSoakResult } from './soak.ts'
import { asMarkdown, problemsOf } from './table.ts'

test('options are read, and each wrong one is named', () => {
  expect(parseUpdateSoakOptions([])).toEqual(updateSoakDefaults)
  const words = '--updates 10 --devices 50 --machines 0 --quiet-minutes 2 --probation 10 --write'
  expect(parseUpdateSoakOptions(words.split(' '))).toEqual({
    updates: 10,
    devices: 50,
    machines: 0,
    quietMinutes: 2,
    probation: 10,
    write: true,
  })
  for (const [args, message] of [
    [['--updates', '0'], /--updates needs a whole number from 1 to 1000/],
    [['--devices'], /--devices needs a whole number/],
    [['--machines', '3'], /--machines needs a whole number from 0 to 2/],
    [['--for', '3'], /--for is not an option of this soak/],
  ] as const)
    expect(() => parseUpdateSoakOptions([...args])).toThrow(message)
})

test('whatever is lost, wrong or beyond its limit is a problem, and stands in the table', () => {
  const options = { ...updateSoakDefaults, updates: 10, devices: 50 }
  const account = { ...newAccount(), ready: 50, reads: 2000, writes: 100, rounds: 20 }
  const having = (stalls: Record<string, number>, changes: Partial<Account> = {}): Account => ({
    ...account,
    stalls: new Map(Object.entries(stalls)),
    ...changes,
  })
  const before = { '02:bf:00:10:00:01': 80, '02:bf:00:10:00:02': 10, 'machine 0': 900 }
  const after = { '02:bf:00:10:00:01': 90, '02:bf:00:10:00:02': 280, 'machine 0': 1100 }
  const good: UpdateSoakResult = {
    minutes: 5,
    updates: 10,
    left: 1,
    seconds: { healthy: [4, 5, 6], left: [14] },
    quiet: having(before),
    updating: having(after),
    outcomes: { ready: 100, open: 2 },
    reportsLost: 0,
  }
  expect(problemsOf(good, options)).toEqual([])
  expect(longestIncreaseMs(good.quiet, good.updating, 'reader')).toBe(270)
  const cases: [Partial<UpdateSoakResult>, RegExp][] = [
    [{ reportsLost: 2 }, /2 reports were declared lost/],
    [{ outcomes: { ready: 99 } }, /100 devices became ready, and 99 are reported/],
    [{ outcomes: { ready: 100, failed: 1 } }, /1 boots are reported as failed/],
    [{ updates: 9 }, /only 9 of 10 updates/],
    [{ updating: having({ ...after, '02:bf:00:10:00:02': 281 }) }, /devices that boot and read was 201 ms above/],
    [{ updating: having({ ...after, '02:bf:00:20:00:01': 291 }) }, /devices that write was 291 ms above/],
    [{ updating: having({ ...after, 'machine 0': 1101 }) }, /virtual machines was 201 ms above/],
    [{ updating: having(after, { errors: ['read 3: other bytes'] }) }, /read 3: other bytes/],
    [{ updating: having(after, { writes: 0 }) }, /nothing was tried/],
    [{ updating: having(after, { rounds: 0 }) }, /no virtual machine read and wrote/],
  ]
  for (const [change, problem] of cases) {
    const bad = { ...good, ...change }
    expect(problemsOf(bad, options).join()).toMatch(problem)
    expect(asMarkdown(bad, { options, date: '2026-11-27T04:00:00.000Z', processors: 2 })).toMatch(problem)
  }
})
