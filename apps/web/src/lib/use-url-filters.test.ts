import { expect, test } from 'vitest'
import { z } from 'zod'
import { readFilters, stillAwaited } from './use-url-filters.ts'

const shape = { outcome: z.enum(['ready', 'failed']), search: z.string().max(4) }

test('known parameters become filters; what the schema does not know counts as not set', () => {
  expect(readFilters(shape, new URLSearchParams('outcome=ready&search=pc&other=1'))).toEqual({
    outcome: 'ready',
    search: 'pc',
  })
  expect(readFilters(shape, new URLSearchParams('outcome=exploded&search=far-too-long'))).toEqual({})
  expect(readFilters(shape, new URLSearchParams('search='))).toEqual({})
})

test('a query that comes late leaves those that were asked for after it, another one none', () => {
  expect(stillAwaited(['a=1', 'a=1&b=2', 'b=2'], 'a=1')).toEqual(['a=1&b=2', 'b=2'])
  expect(stillAwaited(['a=1', 'a=1&b=2'], 'a=1&b=2')).toEqual([])
  expect(stillAwaited(['a=1', 'a=1&b=2'], 'c=3')).toEqual([])
  expect(stillAwaited([], '')).toEqual([])
})
