import { expect, test } from 'vitest'
import { changeOf } from './audit-change.ts'

test('keeps the fields that differ, as they were and as they are', () => {
  const before = { name: 'pc-1', tags: ['a'], enabled: true, at: new Date(0), size: 1n }
  expect(changeOf(before, { ...before, name: 'pc-2', tags: ['a', 'b'], size: 2n })).toEqual({
    before: { name: 'pc-1', tags: ['a'], size: '1' },
    after: { name: 'pc-2', tags: ['a', 'b'], size: '2' },
  })
})

test('keeps all fields of created and deleted objects', () => {
  expect(changeOf(null, { name: 'pc-1' })).toEqual({ before: null, after: { name: 'pc-1' } })
  expect(changeOf({ name: 'pc-1' }, null)).toEqual({ before: { name: 'pc-1' }, after: null })
})

test('hides secrets at any depth and under any name', () => {
  const fields = {
    joinToken: 'bfj_1',
    list: [{ passwordHash: 'x' }],
    edgeKey: new Uint8Array(2),
    raw: new Uint8Array(1),
  }
  expect(JSON.stringify(changeOf(null, fields).after)).toBe(
    '{"joinToken":"[hidden]","list":[{"passwordHash":"[hidden]"}],"edgeKey":"[hidden]","raw":"[hidden]"}',
  )
})

test('bounds long texts and lists', () => {
  const { after } = changeOf(null, { text: 'x'.repeat(9_000), list: Array.from({ length: 300 }, () => 1) })
  expect(JSON.stringify(after).length).toBeLessThan(2_500)
})
