import { expect, test } from 'vitest'
import { actionText, changedFields } from './audit-text'

test('an action reads as words', () => {
  expect(actionText('device.setBootMenu')).toBe('device: set boot menu')
  expect(actionText('bootMenu.update')).toBe('boot menu: update')
})

test('writes that are dropped are said with their size', () => {
  const before = { writes: 'edge_persistent', usedBytes: 3 * 2 ** 20 }
  expect(changedFields({ before, after: { writes: null, usedBytes: 0 } })).toEqual([
    { name: 'writes', before: 'edge disk, persistent', after: 'nothing' },
    { name: 'used', before: '3.00\u00a0MiB', after: '0\u00a0B' },
  ])
})

test('a field of one side alone is shown as come or gone, and null as nothing', () => {
  expect(changedFields({ before: { name: 'a', tags: ['x'] }, after: { name: 'b', site: null } })).toEqual([
    { name: 'name', before: 'a', after: 'b' },
    { name: 'tags', before: '["x"]', after: null },
    { name: 'site', before: null, after: 'nothing' },
  ])
})
