import { expect, test } from 'vitest'
import { layerStanding } from './layer-text'

const version = { id: 'v', number: 3, vdiskId: 'd', vdiskName: 'Linux' }
const layer = { class: 'private', version, currentNumber: 3, releasesBehind: 0 } as const

test('an image of a device’s own says how far behind it is', () => {
  expect(layerStanding(layer)).toMatch(/boot the same version/)
  expect(layerStanding({ ...layer, currentNumber: 7, releasesBehind: 4 })).toMatch(/boot version 7, 4 releases later/)
  expect(layerStanding({ ...layer, currentNumber: 4, releasesBehind: 1 })).toMatch(/1 release later/)
  // Reverted to an older one.
  expect(layerStanding({ ...layer, currentNumber: 2, releasesBehind: 0 })).toMatch(/boot version 2\.$/)
  expect(layerStanding({ ...layer, version: null, releasesBehind: null })).toBe(
    'It stays on that version until you reset it.',
  )
  expect(layerStanding({ ...layer, class: 'edge_persistent' })).toMatch(/does not boot/)
})
