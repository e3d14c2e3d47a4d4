import { expect, test } from 'vitest'
import { isCancellable, jobPercent, jobText, type StoreJob } from './job-text'

const job: StoreJob = {
  id: 'j',
  kind: 'merge',
  state: 'running',
  sourcePath: null,
  sourceUrl: null,
  format: null,
  device: null,
  progressBytes: 1,
  totalBytes: 3,
  edge: { id: 'e', name: 'edge-1', siteId: 's', siteName: 'Hall' },
  vdisk: { id: 'd', name: 'Linux' },
  version: { id: 'v', number: 4 },
  intoVersion: { id: 'w', number: 5 },
  untrusted: { message: null },
  askedBy: 'A',
  askedAt: '2026-11-21T00:00:00Z',
  startedAt: null,
  endedAt: null,
}

test('a job says what is done to what', () => {
  expect(jobText(job)).toBe('Merge Linux version 4 into version 5')
  const ofStore = { ...job, vdisk: null, version: null, intoVersion: null }
  expect(jobText({ ...ofStore, kind: 'verify' })).toBe('Verify the whole store')
  expect(jobText({ ...ofStore, kind: 'gc' })).toBe('Free space')
  expect(jobText({ ...job, intoVersion: null, kind: 'export', format: 'vhdx' })).toBe('Export Linux version 4 as VHDX')
  expect(jobText({ ...job, intoVersion: null, kind: 'pack' })).toBe('Make the difference for Linux version 4')
  expect(jobText({ ...job, intoVersion: null, kind: 'fetch' })).toBe('Fetch Linux version 4')
  const dropped = { ...job, intoVersion: null, kind: 'drop_layer' } as const
  expect(jobText({ ...dropped, device: { id: 'p', name: 'pc-01' } })).toBe(
    'Delete the writes of pc-01 on Linux version 4',
  )
  expect(jobText(dropped)).toBe('Delete the writes of a device on Linux version 4')
})

test('progress is rounded down, and not known before the edge says how much there is', () => {
  expect(jobPercent(job)).toBe(33)
  expect(jobPercent({ ...job, totalBytes: 0 })).toBe(null)
  expect(jobPercent({ ...job, progressBytes: 9 })).toBe(100)
  expect(jobPercent({ ...job, totalBytes: 0, state: 'done' })).toBe(100)
})

test('a seal under way is not cancelled, all else that has not ended is', () => {
  expect(isCancellable({ state: 'running', kind: 'seal' })).toBe(false)
  expect(isCancellable({ state: 'queued', kind: 'seal' })).toBe(true)
  expect(isCancellable({ state: 'running', kind: 'import' })).toBe(true)
  expect(isCancellable({ state: 'failed', kind: 'import' })).toBe(false)
})
