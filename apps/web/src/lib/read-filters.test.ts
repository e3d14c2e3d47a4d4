import { expect, test } from 'vitest'
import { z } from 'zod'
import { readFilters } from './read-filters.ts'

const shape = { outcome: z.enum(['ready', 'failed']), search: z.string().max(4) }

test('known parameters become filters; what the schema does not know counts as not set', () => {
  expect(readFilters(shape, new URLSearchParams('outcome=ready&search=pc&other=1'))).toEqual({
    outcome: 'ready',
    search: 'pc',
  })
  expect(readFilters(shape, new URLSearchParams('outcome=exploded&search=far-too-long'))).toEqual({})
  expect(readFilters(shape, new URLSearchParams('search='))).toEqual({})
})
