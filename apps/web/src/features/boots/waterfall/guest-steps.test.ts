import { expect, test } from 'vitest'
import { unknownSteps } from './guest-steps.ts'

const step = (group: 'firmware' | 'kernel' | 'initramfs' | 'system' | 'unit') => ({
  group,
  name: group,
  startUs: 0,
  durationUs: 1,
})
const guest = (...groups: Parameters<typeof step>[0][]) => ({
  kernelStartUs: 0,
  steps: groups.map(step),
  writeCacheAt: null,
})

test('what nobody reported is one sentence', () => {
  expect(unknownSteps(null, false)).toMatch(/^The device did not report how long/)
  expect(unknownSteps(null, true)).toBe('The device has not reported its OS boot steps yet.')
  expect(unknownSteps(guest(), false)).toMatch(/^The device did not report how long/)
  expect(unknownSteps(guest('kernel', 'initramfs', 'system', 'unit'), false)).toBe(
    'Not reported by the device: firmware.',
  )
  expect(unknownSteps(guest('firmware', 'kernel', 'initramfs', 'system', 'unit'), false)).toBeNull()
})
