import { describe, expect, test } from 'vitest'
import { countOf, formatBytes, formatClockOffset, formatDuration, formatOffset } from './format-quantity.ts'

const plain = (text: string) => text.replaceAll('\u00a0', ' ')

describe('formatDuration', () => {
  test.each([
    [0, '0 µs'],
    [999, '999 µs'],
    [1000, '1.00 ms'],
    [12_345, '12.3 ms'],
    [99_960, '100 ms'],
    [999_499, '999 ms'],
    [999_500, '1.00 s'],
    [9_996_000, '10.0 s'],
    [59_949_999, '59.9 s'],
    [59_950_000, '1 min'],
    [125_000_000, '2 min 5 s'],
    [3_600_000_000, '1 h'],
    [3_720_000_000, '1 h 2 min'],
    [90_000_000_000, '1 d 1 h'],
  ])('%d µs reads as %s', (us, text) => {
    expect(plain(formatDuration(us))).toBe(text)
  })
})

test.each([
  [0, '0 B'],
  [1023, '1023 B'],
  [1024, '1.00 KiB'],
  [1_048_064, '1.00 MiB'],
  [120_586_240, '115 MiB'],
])('%d bytes read as %s', (bytes, text) => {
  expect(plain(formatBytes(bytes))).toBe(text)
})

test('a clock offset always shows its sign', () => {
  expect(plain(formatClockOffset(0))).toBe('±0 ms')
  expect(plain(formatClockOffset(-12))).toBe('−12.0 ms')
  expect(plain(formatClockOffset(1500))).toBe('+1.50 s')
})

test('a point of time before 0 has a minus', () => {
  expect(plain(formatOffset(-1_800_000))).toBe('−1.80 s')
  expect(plain(formatOffset(1_800_000))).toBe('1.80 s')
})

test('a noun follows its number', () => {
  expect(countOf(1, 'boot')).toBe('1 boot')
  expect(countOf(1200, 'boot')).toBe('1,200 boots')
})
