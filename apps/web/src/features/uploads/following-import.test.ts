import { expect, test } from 'vitest'
import { parseFollowingImport } from './following-import'

test('an import that was kept is read again, and anything else is none', () => {
  const kept = {
    edgeId: 'e',
    bootFiles: 'parent',
    parentVersionId: 'p',
    commandLine: 'quiet',
    modules: ['r8125'],
    note: 'n',
    state: 'released',
  }
  expect(parseFollowingImport(JSON.parse(JSON.stringify(kept)))).toEqual(kept)
  expect(parseFollowingImport({ edgeId: 'e', modules: [1, 'a'], bootFiles: 'x', state: 7 })).toEqual({
    edgeId: 'e',
    bootFiles: 'image',
    parentVersionId: null,
    commandLine: '',
    modules: ['a'],
    note: '',
    state: 'test',
  })
  for (const value of [null, undefined, 'e', {}, { edgeId: 5 }]) expect(parseFollowingImport(value)).toBe(null)
})
