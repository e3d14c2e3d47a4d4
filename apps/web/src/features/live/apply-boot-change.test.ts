import { expect, test } from 'vitest'
import { withBoot, withLastBoot } from './apply-boot-change.ts'

type Boot = Parameters<typeof withBoot>[1]

function boot(id: string, minute: number, change: Partial<Boot> = {}): Boot {
  return {
    id,
    deviceId: 'device-1',
    deviceName: 'pc-01',
    mac: '02:bf:00:00:00:01',
    siteId: 'site',
    siteName: 'Lab',
    edgeId: 'edge',
    edgeName: 'edge-1',
    startedAt: `2026-11-18T12:${String(minute).padStart(2, '0')}:00.000Z`,
    outcome: null,
    failedPhase: null,
    failedCause: null,
    lastPhase: 'dhcp',
    totalUs: 1000,
    bytesOut: 0,
    retries: 0,
    hardware: { model: null, processors: 4, memoryGib: 8, networkCard: null },
    storage: null,
    simulated: true,
    generated: false,
    menuEntry: null,
    writeCache: null,
    takenPowerOrder: null,
    deviceState: { state: 'booting', since: '2026-11-18T12:00:00.000Z' },
    waitsFor: null,
    reportedAt: '2026-11-18T12:00:00.000Z',
    phases: [],
    ...change,
  }
}

const ids = (boots: Boot[]) => boots.map(({ id }) => id)

test('a known boot is replaced where it stands', () => {
  const boots = withBoot([boot('b', 2), boot('a', 1)], boot('a', 1, { outcome: 'ready' }))
  expect(ids(boots)).toEqual(['b', 'a'])
  expect(boots[1]?.outcome).toBe('ready')
})

test('a new boot comes in by its begin, and the list keeps its length', () => {
  expect(ids(withBoot([boot('b', 2), boot('a', 1)], boot('c', 3)))).toEqual(['c', 'b'])
  expect(ids(withBoot([], boot('c', 3)))).toEqual(['c'])
  expect(ids(withBoot([boot('b', 2), boot('a', 1)], boot('late', 0)))).toEqual(['b', 'a'])
})

test('a boot reported late does not hide the newest boot of its device', () => {
  const device = {
    id: 'device-1',
    lastBoot: {
      id: 'b',
      startedAt: boot('b', 2).startedAt,
      outcome: null,
      totalUs: 1,
      simulated: true,
      generated: false,
      writeCache: null,
      reportedAt: boot('b', 2).startedAt,
    },
    now: { state: 'booting' as const, since: boot('b', 2).startedAt },
    waitsFor: null,
  }
  expect(withLastBoot(device, boot('a', 1)).lastBoot.id).toBe('b')
  expect(withLastBoot(device, boot('c', 3)).lastBoot.id).toBe('c')
  expect(withLastBoot(device, boot('c', 3, { deviceId: 'device-2' })).lastBoot.id).toBe('b')
})

test('what the device does now is what its newest boot says', () => {
  const now = { state: 'unknown' as const, since: null }
  const device = { id: 'device-1', lastBoot: null, now, waitsFor: null }
  const deviceState = { state: 'running' as const, since: '2026-11-18T12:01:09.000Z' }
  expect(withLastBoot(device, boot('a', 1, { deviceState })).now).toEqual(deviceState)
})

test('what a device waits for is what its newest boot says; the home of its writes is away until that edge is heard', () => {
  const wait = {
    edge: { id: 'home', name: 'edge-a' },
    asked: null,
    since: null,
    restartsAt: null,
    sentence: 'It waits.',
    remedy: '',
    reason: 'edge_not_heard' as const,
  }
  const now = { state: 'unknown' as const, since: null }
  const device = { id: 'device-1', lastBoot: null, now, waitsFor: wait }
  const asked = { ...wait, reason: 'asked_another_edge' as const }
  expect(withLastBoot(device, boot('a', 1, { waitsFor: asked })).waitsFor).toBe(asked)
  expect(withLastBoot(device, boot('a', 1)).waitsFor).toBe(wait)
  expect(withLastBoot(device, boot('a', 1, { edgeId: 'home' })).waitsFor).toBeNull()
  expect(withLastBoot({ ...device, waitsFor: asked }, boot('a', 1)).waitsFor).toBeNull()
})
