import { expect, test } from 'vitest'
import { packedIdAt, packedIdLength, packId, unpackId } from './packed-id.ts'

test('ids survive packing, those with high and low bytes too', () => {
  for (const id of [
    '0192f0c1-2d3e-7a4b-8c5d-6e7f8091a2b3',
    'ffffffff-ffff-4fff-bfff-fffffffffffb',
    '00000000-0000-4000-8000-000000000000',
  ]) {
    expect(packId(id)).toHaveLength(packedIdLength)
    expect(packId(id)).toMatch(/^[\w-]+$/)
    expect(unpackId(packId(id))).toBe(id)
  }
})

test('full stops are none', () => {
  const id = packId('0192f0c1-2d3e-7a4b-8c5d-6e7f8091a2b3')
  const ids = id + '.'.repeat(packedIdLength) + id
  expect([0, 1, 2].map((index) => packedIdAt(ids, index))).toEqual([id, null, id])
})
