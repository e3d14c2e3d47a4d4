import { expect, test } from 'vitest'
import { byteText } from './byte-text.ts'

test('a size has one digit after the point, in the unit that fits', () => {
  expect([0, 1023, 1024, 1536, 1024 ** 2 - 1, 5 * 1024 ** 3, 1024 ** 6].map(byteText)).toEqual([
    '0 B',
    '1023 B',
    '1.0 KiB',
    '1.5 KiB',
    '1.0 MiB',
    '5.0 GiB',
    '1024.0 PiB',
  ])
})
