import { expect, test } from 'vitest'
import { linesOfPairs, pairsOfLines } from './pair-lines'

test('names and values come back as they were written', () => {
  const pairs = { A: '1', 'b.c': 'x=y z ', EMPTY: '' }
  expect(pairsOfLines(linesOfPairs(pairs))).toEqual(pairs)
})

test('a line without a name or a sign between is none', () => {
  expect(pairsOfLines('A')).toBeNull()
  expect(pairsOfLines('=x')).toBeNull()
  expect(pairsOfLines('\n\r\n')).toEqual({})
})
