import { expect, test } from 'vitest'
import { type Capture, captureText, copiedText, isActive } from './capture-text'

const capture: Capture = {
  id: '1',
  deviceId: '2',
  state: 'copying',
  question: null,
  disk: 'auto',
  disks: [],
  sizeBytes: 64 << 20,
  vdisk: { id: '3', name: 'Office' },
  version: { id: '4', number: 4 },
  edge: { id: '5', name: 'edge-1' },
  bootVersion: null,
  copied: { bytes: 16 << 20, totalBytes: 64 << 20, bytesPerSecond: 8 << 20, reportedAt: '2026-11-20T12:00:00.000Z' },
  deadlineAt: '2026-11-20T12:00:00.000Z',
  reason: null,
  untrusted: { remark: null },
  askedBy: 'x',
  askedAt: '2026-11-20T12:00:00.000Z',
  endedAt: null,
}
const textOf = (more: Partial<Capture>) => captureText({ ...capture, ...more }, 'pc-01')

test('the copy shows how much of the disk is done, its speed, and when the device is only to switch off', () => {
  expect(textOf({})).toBe('pc-01 copies its disk into version 4 of Office.')
  expect(copiedText(capture)).toMatch(/^16\.0\sMiB kept of a disk of 64\.0\sMiB, 8\.00\sMiB\/s; zeros are not sent$/)
  expect(copiedText({ ...capture, copied: null })).toMatch(/a disk of 64\.0\sMiB/)
  const whole = { bytes: 64 << 20, totalBytes: 64 << 20, bytesPerSecond: null, reportedAt: capture.askedAt }
  expect(textOf({ copied: whole })).toContain('Waiting for pc-01 to switch itself off')
})

test('a device that has not said its size boots twice, and ends say how it ended', () => {
  expect(textOf({ state: 'waiting', sizeBytes: null })).toContain('boots once more by itself')
  expect(textOf({ state: 'waiting' })).not.toContain('once more')
  expect(textOf({ state: 'failed', reason: 'pc-01 has not booted.' })).toBe('pc-01 has not booted.')
  expect(textOf({ state: 'done' })).toContain('captured as version 4 of Office')
  expect([isActive({ state: 'undoing' }), isActive({ state: 'cancelled' })]).toEqual([true, false])
})
