import { expect, test } from 'vitest'
import { actionWords, changedFields } from './audit-words'

test('an action reads as words', () => {
  expect(actionWords('device.setBootMenu')).toBe('device: set boot menu')
  expect(actionWords('bootMenu.update')).toBe('boot menu: update')
})

test('a field of one side alone is shown as come or gone, and null as nothing', () => {
  expect(changedFields({ before: { name: 'a', tags: ['x'] }, after: { name: 'b', site: null } })).toEqual([
    { name: 'name', before: 'a', after: 'b' },
    { name: 'tags', before: '["x"]', after: null },
    { name: 'site', before: null, after: 'nothing' },
  ])
})
