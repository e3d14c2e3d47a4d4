import { expect, test } from 'vitest'
import { adviceOf, isUnit, type ProgramRead, sortReads, traceProblem } from './programs-read'

const program = (changes: Partial<ProgramRead>): ProgramRead => ({
  name: 'cat',
  unit: '',
  reads: 1,
  bytes: 4096,
  coldReads: 0,
  coldBytes: 0,
  aheadBytes: 0,
  storageUs: 100,
  firstUs: 0,
  gainUs: 0,
  ...changes,
})
const plymouth = program({
  name: 'plymouthd',
  unit: 'plymouth-start.service',
  coldBytes: 4_300_000,
  gainUs: 812_000,
})

test('the program whose cold reads cost the boot most is named, with what the boot would gain', () => {
  expect(adviceOf({ programs: [program({ gainUs: 60_000 }), plymouth] })).toBe(
    'plymouthd (plymouth-start.service) reads 4.10\u00a0MiB cold: 812\u00a0ms. It is not in the boot profile. With it in the edge’s memory, the boot would be 812\u00a0ms faster.',
  )
  const some = program({ unit: '(kernel)', aheadBytes: 4096, coldBytes: 8192, gainUs: 70_000 })
  expect(adviceOf({ programs: [some] })).toMatch(
    /^cat reads 8\.00\u00a0KiB cold: .* The boot profile has 4\.00\u00a0KiB/,
  )
})

test('where no program waited long, nothing is advised', () => {
  expect(adviceOf({ programs: [] })).toBeNull()
  expect(adviceOf({ programs: [program({ gainUs: 49_999 })] })).toBeNull()
})

test('a kernel that tells nothing is said, and others are not', () => {
  const trace = { lost: 0, namedBytes: 0, unitBytes: 0 }
  expect(traceProblem({ trace: null })).toBeNull()
  expect(traceProblem({ trace: { ...trace, state: 'complete' } })).toBeNull()
  expect(traceProblem({ trace: { ...trace, state: 'no_tracing' } })).toMatch(/no tracefs/)
  expect(traceProblem({ trace: { ...trace, state: 'no_event' } })).toMatch(/no event/)
})

test('programs are sorted by any column, and what is in brackets is no unit', () => {
  const programs = [program({ name: 'b', bytes: 5 }), program({ name: 'a', bytes: 9 })]
  expect(sortReads(programs, '-bytes').map(({ name }) => name)).toEqual(['a', 'b'])
  expect(sortReads(programs, 'bytes').map(({ name }) => name)).toEqual(['b', 'a'])
  expect(sortReads(programs, 'name').map(({ name }) => name)).toEqual(['a', 'b'])
  expect(['ssh.service', '(kernel)', ''].map(isUnit)).toEqual([true, false, false])
})
