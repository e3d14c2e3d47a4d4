import { expect, test } from 'vitest'
import { bootsOfLink, linkIdOf } from './boot-link'

test('a link has the first half of a boot’s id, however it was copied', () => {
  expect(linkIdOf('0123456789ab')).toBe('0123456789ab')
  expect(linkIdOf('01234567-89AB')).toBe('0123456789ab')
  expect(linkIdOf('01234567-89ab-4def-8123-456789abcdef')).toBe('0123456789ab4def8123456789abcdef')
  for (const text of ['', '0123456789a', '0123456789ag', '../../boots', `${'0'.repeat(33)}`])
    expect(linkIdOf(text)).toBeNull()
})

test('only boots with that id are its boots', () => {
  const items = [{ id: '01234567-89ab-4def-8123-456789abcdef' }, { id: '11234567-89ab-4def-8123-456789abcdef' }]
  expect(bootsOfLink('0123456789ab', { groups: [{ items }] })).toEqual([items[0]])
  expect(bootsOfLink('0123456789ac', { groups: [{ items }] })).toEqual([])
  expect(bootsOfLink('0123456789ab')).toEqual([])
})
