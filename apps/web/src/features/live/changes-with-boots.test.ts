import { expect, test } from 'vitest'
import { changesWithBoots } from './changes-with-boots.ts'

test.each([
  [[['boot', 'list'], { type: 'infinite' }], true],
  [[['overview', 'get'], { input: {} }], true],
  [[['device', 'get'], { input: {} }], true],
  [[['boot', 'get'], { input: {} }], false],
  [[['farm', 'list']], false],
  [[['audit', 'list']], false],
  [['something else'], false],
])('%j is loaded again when boots begin or end: %s', (queryKey, isChanged) => {
  expect(changesWithBoots(queryKey)).toBe(isChanged)
})
