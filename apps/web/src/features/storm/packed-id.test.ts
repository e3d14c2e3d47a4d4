import { expect, test } from 'vitest'
import { packedAt, packedIdLength, packedMacLength, packId, packMac, unpackId } from './packed-id.ts'

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

test('each of a column is found by its index', () => {
  const ids = ['0192f0c1-2d3e-7a4b-8c5d-6e7f8091a2b3', '00000000-0000-4000-8000-000000000000'].map(packId)
  expect([0, 1].map((index) => packedAt(ids.join(''), index, packedIdLength))).toEqual(ids)
  const macs = ['02:bf:00:00:00:01', '02:bf:00:00:00:ff'].map(packMac)
  expect([0, 1].map((index) => packedAt(macs.join(''), index, packedMacLength))).toEqual(macs)
})
