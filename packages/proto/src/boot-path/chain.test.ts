import { expect, test } from 'vitest'
import { unitChain } from './chain.ts'

const unit = (name: string, startUs: number, endUs: number) => ({
  group: 'unit' as const,
  name,
  startUs,
  durationUs: endUs - startUs,
})
const names = (...input: Parameters<typeof unitChain>) => unitChain(...input).map(({ name }) => name)

test('the chain is of the units that cover most of the time one after the other', () => {
  const units = [
    unit('short and last', 995, 999),
    unit('long', 200, 996),
    unit('beside it', 210, 900),
    unit('first', 0, 200),
    unit('after the boot', 1_100, 5_000),
    unit('not done', 500, 1_001),
  ]
  expect(names(units, 1_000)).toEqual(['first', 'long'])
  expect(names(units.slice(2, 4), 1_000)).toEqual(['first', 'beside it'])
})

test('steps of other groups, without length, or with an end before their start, are none', () => {
  expect(names([{ ...unit('kernel', 0, 5), group: 'kernel' }, unit('empty', 5, 5), unit('lie', 9, 1)], 10)).toEqual([])
  expect(names([unit('a', 10 ** 15, 10 ** 15 + 5)], Number.MAX_SAFE_INTEGER)).toEqual(['a'])
})
