import { expect, test } from 'vitest'
import { isBlackHole } from './black-hole.ts'

test('a size is blamed once it was tried three times, and more often on a path that loses others, too', () => {
  const losing = (lost: number) => ({ packets: 100, lost })
  expect(isBlackHole({})).toBe(false)
  expect(isBlackHole({ lostSizeCount: 2 })).toBe(false)
  expect(isBlackHole({ lostSizeCount: 3 })).toBe(true)
  expect(isBlackHole({ lostSizeCount: 3, toDevice: { packets: 0, lost: 0 } })).toBe(true)
  expect(isBlackHole({ lostSizeCount: 3, toDevice: losing(4) })).toBe(true)
  expect(isBlackHole({ lostSizeCount: 3, toDevice: losing(10) })).toBe(false)
  expect(isBlackHole({ lostSizeCount: 5, toDevice: losing(10) })).toBe(true)
  expect(isBlackHole({ lostSizeCount: 60_000, toDevice: losing(100) })).toBe(false)
})
