import { expect, test } from 'vitest'
import { countText, kindTexts, matchText, type SearchHit } from './hit-text.ts'

const hit: SearchHit = { id: '1', name: 'pc', place: null, match: null, vdiskId: '2', boot: null }

test('says what was found if it is not the name', () => {
  expect(matchText(null)).toBeNull()
  expect(matchText({ field: 'mac', value: '52:54:00:12:34:56' })).toBe('MAC 52:54:00:12:34:56')
  expect(matchText({ field: 'email', value: 'ada@example.org' })).toBe('ada@example.org')
})

test('a version leads to its vDisk, a collection to its page', () => {
  expect(kindTexts.version.href(hit)).toBe('/vdisks/2')
  expect(kindTexts.collection.href(hit)).toBe('/collections/1')
})

test('counts for screen readers, and says that there are more', () => {
  expect(countText([])).toBe('Nothing found.')
  expect(countText([{ kind: 'device', items: [hit], hasMore: false }])).toBe('1 result.')
  expect(countText([{ kind: 'site', items: [hit, hit], hasMore: true }])).toBe('2 results. The first ones are shown.')
})
