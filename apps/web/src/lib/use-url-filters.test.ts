import { expect, test } from 'vitest'
import { stillAwaited } from './use-url-filters.ts'

test('a query that comes late leaves those that were asked for after it, another one none', () => {
  expect(stillAwaited(['a=1', 'a=1&b=2', 'b=2'], 'a=1')).toEqual(['a=1&b=2', 'b=2'])
  expect(stillAwaited(['a=1', 'a=1&b=2'], 'a=1&b=2')).toEqual([])
  expect(stillAwaited(['a=1', 'a=1&b=2'], 'c=3')).toEqual([])
  expect(stillAwaited([], '')).toEqual([])
})
