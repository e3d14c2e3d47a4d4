import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test } from 'vitest'
import { DeviceStateCell, unknownTitle } from './device-state.tsx'

type Device = Parameters<typeof DeviceStateCell>[0]['device']

const lastBoot = {
  id: '0b3f6a52-6c0f-4b1d-8a57-3f1de5a0c701',
  startedAt: '2026-11-18T12:00:00.000Z',
  outcome: 'ready',
  totalUs: 1,
  simulated: false,
  generated: false,
  writeCache: null,
  reportedAt: '2026-11-18T12:00:00.000Z',
} as const satisfies Device['lastBoot']

const cellOf = (device: Device) => renderToStaticMarkup(createElement(DeviceStateCell, { device }))

test.each([
  ['booting', 'Booting'],
  ['running', 'Running'],
  ['restarting', 'Restarting'],
  ['off', 'Off'],
  ['not_heard', 'Offline'],
  ['failed', 'Failed'],
] as const)('%s is one word with its time', (state, word) => {
  const markup = cellOf({ now: { state, since: '2026-11-18T12:00:00.000Z' }, lastBoot, waitsFor: null })
  expect(markup).toContain(`${word}</span>`)
  expect(markup).toContain('since <time dateTime="2026-11-18T12:00:00.000Z"')
})

test.each(['stopped', 'lost'] as const)('a device whose disk stands still does not run: %s', (state) => {
  const writeCache = {
    class: 'edge',
    level: 'full',
    usedBytes: 1,
    sizeBytes: 1,
    percent: 100,
    state,
  } as const
  const markup = cellOf({
    now: { state: 'running', since: '2026-11-18T12:00:00.000Z' },
    lastBoot: { ...lastBoot, writeCache: { ...writeCache, fullInSeconds: null } },
    waitsFor: null,
  })
  expect(markup).toContain('Stopped</span>')
  expect(markup).not.toMatch(/Running|since/)
})

test('unknown has no time, and says why', () => {
  const markup = cellOf({ now: { state: 'unknown', since: null }, lastBoot: null, waitsFor: null })
  expect(markup).toContain('title="The device has not booted yet."')
  expect(markup).not.toContain('since')
  expect(unknownTitle({ ...lastBoot, outcome: 'silent' })).toMatch(/timed out/)
  expect(unknownTitle({ ...lastBoot, outcome: null })).toMatch(/edge went offline/)
  expect(unknownTitle({ ...lastBoot, generated: true })).toBe('No report gives the status.')
})

const wait = {
  edge: { id: '1', name: 'edge-a' },
  asked: { id: '2', name: 'edge-b' },
  since: '2026-11-18T13:00:00.000Z',
  restartsAt: null,
  sentence: 'The device waits for edge-a.',
  remedy: 'Bring it back.',
}

test('a device that waits does neither run nor boot; one whose edge is away may', () => {
  for (const state of ['running', 'booting', 'unknown'] as const) {
    const now = { state, since: null }
    const waiting = cellOf({ now, lastBoot, waitsFor: { ...wait, reason: 'asked_another_edge' } })
    expect(waiting).toContain('title="The device waits for edge-a."')
    expect(waiting).toContain('Waiting</span>')
    expect(waiting).toContain('since <time dateTime="2026-11-18T13:00:00.000Z"')
    expect(waiting).not.toContain('animate')
    const lost = cellOf({ now, lastBoot, waitsFor: { ...wait, asked: null, reason: 'lost_disk' } })
    expect(lost).toBe(waiting)
    const away = cellOf({ now, lastBoot, waitsFor: { ...wait, asked: null, reason: 'edge_not_heard' } })
    expect(away).toBe(cellOf({ now, lastBoot, waitsFor: null }))
  }
})
