import { packId, packMac } from './packed-id.ts'
import type { Storm, StormCell } from './storm-model.ts'

/** Storms for tests. */

export const atMs = Date.parse('2026-11-28T07:10:00.000Z')
export const idOf = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`
export const macOf = (number: number) => `02:bf:00:00:00:${number.toString(16).padStart(2, '0')}`

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
    sites: [{ id: idOf(900), name: 'Lab', deviceCount: 2 }],
    kinds: [],
    edges: [],
    cells: {
      names: ['pc-1', 'pc-2'],
      unregistered: [],
      macs: packMac(macOf(1)) + packMac(macOf(2)),
      ids: packId(idOf(101)) + packId(idOf(2)),
      states: [states.indexOf('nbp'), 0],
      kinds: [0, -1],
      startedTenths: [36_000 - 50, null],
      tookTenths: [40, 0],
      phaseTenths: [20, 0],
    },
    ...changes,
  }
}

/** A boot of a kind of which ten took 10 s; ready after 10 s, 100 s ago, unless changed. */
export function sampleCell(number: number, changes: Partial<StormCell> = {}): StormCell {
  return {
    key: `${idOf(900)} ${packMac(macOf(number))}`,
    name: `pc-${number}`,
    siteName: 'Lab',
    isRegistered: true,
    deviceId: null,
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
