import { expect, test } from 'vitest'
import { transferState } from './transfers-panel'

test('a transfer that ended well needs no word; one without an end is in progress only while the boot is', () => {
  expect(transferState({ outcome: 'done' }, true)).toBeNull()
  expect(transferState({ outcome: 'not_found' }, false)?.word).toBe('not found')
  expect(transferState({ outcome: null }, true)?.word).toBe('loading')
  expect(transferState({ outcome: null }, false)?.word).toBe('not finished')
})
