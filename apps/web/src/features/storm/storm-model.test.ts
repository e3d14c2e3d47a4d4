import { expect, test } from 'vitest'
import type { BootSummary } from '../boots/boot-types.ts'
import { packId } from './packed-id.ts'
import { elapsedMsOf, stormModelOf, withBoots } from './storm-model.ts'
import { atMs, idOf, macOf, sampleStorm } from './storm-samples.ts'

function boot(deviceNumber: number, changes: Partial<BootSummary> = {}): BootSummary {
  return {
    id: idOf(200 + deviceNumber),
    deviceId: idOf(deviceNumber),
    mac: macOf(deviceNumber),
    siteId: idOf(900),
    startedAt: new Date(atMs - 1_000).toISOString(),
    reportedAt: new Date(atMs + 500).toISOString(),
    outcome: null,
    lastPhase: 'loader',
    totalUs: 1_400_000,
    generated: false,
    phases: [
      { name: 'dhcp', startUs: 0, durationUs: 1_000_000 },
      { name: 'loader', startUs: 1_000_000, durationUs: null },
    ],
    ...changes,
  } as BootSummary
}

test('columns become cells', () => {
  const { cells } = stormModelOf(sampleStorm())
  expect(cells).toMatchObject([
    { name: 'pc-1', siteName: 'Lab', state: 'nbp', startedAtMs: atMs - 5_000, phaseMs: 2_000, kind: 0 },
    { name: 'pc-2', bootId: null, deviceId: packId(idOf(2)), state: 'idle', startedAtMs: 0, kind: -1 },
  ])
  expect(cells.map((cell) => elapsedMsOf(cell, atMs))).toEqual([5_000, null])
})

test('a boot that begins, and one that ends, change their cells', () => {
  const model = withBoots(stormModelOf(sampleStorm()), [
    boot(2),
    boot(1, { id: idOf(101), outcome: 'ready', totalUs: 6_000_000, startedAt: new Date(atMs - 5_000).toISOString() }),
  ])
  expect(model.cells).toMatchObject([
    { state: 'ready', tookMs: 6_000, phaseMs: 0, kind: 0 },
    { state: 'loader', bootId: packId(idOf(202)), startedAtMs: atMs - 1_000, phaseMs: 1_000, kind: -1 },
  ])
})

test('a boot of an unregistered machine changes the cell of that machine alone', () => {
  const sample = sampleStorm()
  const base = stormModelOf({ ...sample, cells: { ...sample.cells, unregistered: [1] } })
  const { cells } = withBoots(base, [boot(2, { deviceId: null }), boot(1, { deviceId: null })])
  expect(cells).toMatchObject([
    { state: 'nbp', isRegistered: true },
    { state: 'loader', isRegistered: false, bootId: packId(idOf(202)) },
  ])
})

test('an older boot, one of another site, of the demo, or from before the answer changes nothing', () => {
  const base = stormModelOf(sampleStorm())
  for (const other of [
    boot(1, { startedAt: new Date(atMs - 60_000).toISOString() }),
    boot(2, { siteId: idOf(901) }),
    boot(2, { generated: true }),
    boot(2, { startedAt: new Date(atMs - 2 * 3_600_000).toISOString() }),
    boot(2, { reportedAt: new Date(atMs - 30_000).toISOString() }),
    boot(3),
    boot(2, { deviceId: null }),
  ])
    expect(withBoots(base, [other]).cells).toEqual(base.cells)
})

test('a device of a run keeps its boot in the run', () => {
  const run = { id: idOf(5), scheduleId: idOf(6), name: 'Morning', instant: '', state: 'done', ratePerMinute: 10 }
  const base = stormModelOf(sampleStorm({ run }))
  const [first, second] = withBoots(base, [boot(1), boot(2)]).cells
  expect(first).toEqual(base.cells[0])
  expect(second).toMatchObject({ state: 'loader' })
})

test('a phase that this page does not know is the first one', () => {
  const [, cell] = withBoots(stormModelOf(sampleStorm()), [boot(2, { lastPhase: 'later' as never })]).cells
  expect(cell?.state).toBe('firmware')
})
