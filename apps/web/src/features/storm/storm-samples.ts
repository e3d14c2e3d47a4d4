import { packId } from './packed-id.ts'
import type { Storm, StormCell } from './storm-model.ts'

/** Storms for tests. */

export const atMs = Date.parse('2026-11-28T07:10:00.000Z')
export const idOf = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`

const states: Storm['states'] = [
  'idle',
  'queued',
  'skipped',
  'firmware',
  'dhcp',
  'nbp',
  'loader',
  'stage1',
  'breather',
  'stage2',
  'ready',
  'failed',
  'silent',
  'no_response',
  'superseded',
  'local_disk',
]

/** Two devices of one site: the first is in its second phase since 3 s, the second has no boot. */
export function sampleStorm(changes: Partial<Storm> = {}): Storm {
  return {
    farm: null,
    site: null,
    collection: null,
    run: null,
    at: new Date(atMs).toISOString(),
    since: new Date(atMs - 3_600_000).toISOString(),
    deviceCount: 2,
    states,
    sites: [{ id: idOf(900), name: 'Lab' }],
    kinds: [],
    edges: [],
    cells: {
      names: ['pc-1', 'pc-2'],
      deviceIds: packId(idOf(1)) + packId(idOf(2)),
      bootIds: packId(idOf(101)) + '.'.repeat(22),
      states: [states.indexOf('nbp'), 0],
      sites: [0, 0],
      kinds: [0, -1],
      startedMs: [3_600_000 - 5_000, 0],
      tookMs: [4_000, 0],
      phaseMs: [2_000, 0],
    },
    ...changes,
  }
}

/** A boot of a kind of which ten took 10 s; ready after 10 s, 100 s ago, unless changed. */
export function sampleCell(number: number, changes: Partial<StormCell> = {}): StormCell {
  return {
    name: `pc-${number}`,
    siteName: 'Lab',
    siteId: idOf(900),
    deviceId: packId(idOf(number)),
    bootId: packId(idOf(100 + number)),
    state: 'ready',
    kind: 0,
    startedAtMs: atMs - 110_000,
    tookMs: 10_000,
    phaseMs: 0,
    ...changes,
  }
}

export const sampleKinds: Storm['kinds'] = [
  {
    name: 'Debian, version 3',
    basis: 'storm',
    readyCount: 10,
    p50Ms: 10_000,
    phaseP50Ms: { breather: 2_000, stage2: 6_000 },
  },
  { name: 'Debian, version 4', basis: null, readyCount: 0, p50Ms: null, phaseP50Ms: {} },
]
