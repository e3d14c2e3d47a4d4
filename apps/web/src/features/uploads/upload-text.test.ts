import { expect, test } from 'vitest'
import type { SendProgress } from './upload-sender'
import { progressText, stopText } from './upload-text'

const mib = 1 << 20
const plain = (text: string | null) => text?.replaceAll('\u00a0', ' ')

test('progress says how much arrived, how fast, and how long it takes', () => {
  const of = (sentBytes: number, bytesPerSecond: number | null) =>
    plain(progressText({ sentBytes, bytesPerSecond }, 100 * mib))
  expect(of(34.9 * mib, null)).toBe('34 %, 34.9 MiB of 100 MiB')
  expect(of(50 * mib, 2 * mib)).toBe('50 %, 50.0 MiB of 100 MiB, 2.00 MiB/s, 25 s left')
  expect(of(0, mib)).toBe('0 %, 0 B of 100 MiB, 1.00 MiB/s, 1 min 40 s left')
  expect(of(100 * mib - 1, mib)).toContain('99 %')
  expect(of(100 * mib - 1, mib)).toContain(', 1 s left')
})

test('an upload that does not advance says why', () => {
  const of = (more: Partial<SendProgress>) =>
    stopText({ phase: 'stopped', sentBytes: 0, bytesPerSecond: null, reason: null, detail: null, ...more })
  expect(of({ phase: 'sending' })).toBe(null)
  expect(of({ phase: 'waiting' })).toContain('The connection to the control plane is lost.')
  expect(of({ phase: 'waiting', detail: 'Too many pieces.' })).toBe('Too many pieces.')
  expect(of({ reason: 'signed-out', detail: 'Sign in.' })).toContain('Your session ended')
  expect(of({ reason: 'refused', detail: 'The disk is full.' })).toBe('The disk is full.')
  expect(of({ reason: 'refused' })).toBe('The control plane refused the file.')
})
