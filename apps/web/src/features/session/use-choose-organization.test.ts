import { expect, test } from 'vitest'
import { pathElsewhere } from './use-choose-organization'

test.each([
  ['/', '/'],
  ['/devices', '/devices'],
  ['/devices/0b3f6a52-6c0f-4b1d-8a57-3f1de5a0c701', '/devices'],
  ['/schedules/0b3f6a52-6c0f-4b1d-8a57-3f1de5a0c701/edit', '/schedules'],
  ['/no-such-place', '/'],
])('another organization is entered from %s at %s', (from, to) => {
  expect(pathElsewhere(from)).toBe(to)
})
