import { describe, expect, test } from 'vitest'
import { limitMib, readLimit, writeCacheText } from './write-cache-text'

describe('a limit as people write it', () => {
  test.each([
    ['', null],
    [' 2048 ', 2 ** 31],
    ['16', 2 ** 24],
    ['67108864', 2 ** 46],
  ])('%j is read', (text, limitBytes) => {
    expect(readLimit(text)).toEqual({ limitBytes })
    expect(limitMib(limitBytes)).toBe(text.trim())
  })

  test.each([
    ['0', 'at least 16'],
    ['-5', 'at least 16'],
    ['15.9', 'at least 16'],
    ['67108865', 'at most 67108864 (64 TiB)'],
    ['1e999', 'at most 67108864 (64 TiB)'],
    ['2 GiB', '“2 GiB” is not a number'],
  ])('%j is refused with what is wrong', (text, problem) => {
    expect(readLimit(text)).toEqual({ problem: expect.stringContaining(problem) })
  })
})

test('a limit is said where there is one: not in the device’s RAM, and of what goes to the edge or the disk', () => {
  const limited = { limitBytes: 2 ** 30, full: 'stop' } as const
  expect(writeCacheText({ class: 'device_ram', ...limited }).join(' ')).not.toContain('GiB')
  expect(writeCacheText({ class: 'device_ram_overflow', ...limited })).toContain(
    'Each device may write 1.00\u00a0GiB to the edge.',
  )
  expect(writeCacheText({ class: 'device_ram_local_disk', ...limited })).toContain(
    'Each device may write 1.00\u00a0GiB to the local disk.',
  )
  expect(writeCacheText({ class: 'edge', ...limited, limitBytes: null })).toContain(
    'Each device may write until no space is left.',
  )
})
