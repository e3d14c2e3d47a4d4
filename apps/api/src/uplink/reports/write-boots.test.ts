import { randomUUID } from 'node:crypto'
import { bootCauses } from '@bootfarm/proto/boot-phases'
import {
  type BootReport,
  bootReport,
  bootReportSizeMax,
  type EdgeMachine,
  edgeOnlineWithinMs,
} from '@bootfarm/proto/uplink'
import { describe, expect, test } from 'vitest'
import { bootWith, guestWith } from '../../../test/edge-client.ts'
import { useTestSite } from '../../../test/test-site.ts'
import type { BootDetail } from '../../boot/schema.ts'
import type { DeviceDetail, DeviceSummary } from '../../device/schema.ts'

const site = useTestSite('viewer')
const report = (...boots: BootReport[]) => site().report(...boots)

const mac = '02:bf:00:00:00:01'
const mebibyte = 1024 * 1024
const cache = (usedMiB: number) => ({ usedBytes: usedMiB * mebibyte, sizeBytes: 100 * mebibyte, atUs: 9e6 })

const columns = { processors: 8, memoryMib: 2 ** 31 - 1, networkCard: 'e1000e 8086:15b8' }
const columnsOf = (id: string) =>
  site().api.db.boot.findFirst({
    where: { id },
    select: { processors: true, memoryMib: true, networkCard: true, storage: true },
  })

const storesOn = (storeMedium: EdgeMachine['storeMedium']) => ({
  loadAverage: 0.5,
  processors: 4,
  memoryTotalBytes: 8e9,
  memoryAvailableBytes: 4e9,
  fileCacheBytes: 2e9,
  storeTotalBytes: 4e11,
  storeFreeBytes: 3e11,
  storeMedium,
})

const getBoot = (bootId: string) => site().query<BootDetail>('boot.get', { bootId })
const getDevice = () => site().query<DeviceDetail>('device.get', { deviceId: site().deviceId })

describe('what a device says of itself', () => {
  test('is kept with its boot, its steps on the boot’s own axis of time and by their begin', async () => {
    const id = randomUUID()
    const steps = guestWith().steps.toReversed()
    await report(bootWith({ id, mac, guest: guestWith({ steps, writeCache: cache(12) }) }))
    const { guest, writeCache } = await getBoot(id)
    expect(guest).toMatchObject({ kernelStartUs: 1_200_000, writeCacheAt: '2026-11-20T11:59:09.000Z' })
    expect(guest?.steps.map(({ name, startUs, durationUs }) => [name, startUs, durationUs])).toEqual([
      ['firmware', -1_800_000, 1_500_000],
      ['kernel', 1_200_000, 400_000],
      ['modules', 1_600_000, 90_000],
      ['disk', 1_690_000, 210_000],
      ['systemd', 1_900_000, 1_000_000],
      ['ssh.service', 2_100_000, 620_000],
    ])
    expect(writeCache).toEqual({
      class: 'device_ram',
      state: 'ok',
      fullInSeconds: null,
      usedBytes: 12 * mebibyte,
      sizeBytes: 100 * mebibyte,
      percent: 12,
      level: 'ok',
    })
  })

  test('is null until it has said anything', async () => {
    const id = randomUUID()
    await report(bootWith({ id, mac }))
    expect(await getBoot(id)).toMatchObject({ guest: null, writeCache: null })
  })

  test('is not erased by a later report without it, in one batch or in two', async () => {
    const [one, two] = [randomUUID(), randomUUID()]
    const guest = guestWith({ writeCache: cache(50) })
    await report(bootWith({ id: one, mac, guest }), bootWith({ id: one, mac, revision: 2, reconnects: 1 }))
    await report(bootWith({ id: two, mac, guest }))
    await report(bootWith({ id: two, mac, revision: 2, reconnects: 1 }))
    for (const id of [one, two])
      expect(await getBoot(id)).toMatchObject({
        revision: 2,
        facts: { reconnects: 1 },
        guest: { steps: { length: 6 } },
        writeCache: { percent: 50 },
      })
  })

  test('is what it is, beside its edge’s storage, and whatever it claims does no harm', async () => {
    const id = randomUUID()
    const machine = {
      processors: 8,
      memoryMib: 2 ** 32 - 1,
      card: '8086:15b8',
      driver: 'e1000e',
      linkMbit: 2500,
      model: 'Maker Desk 7',
    }
    expect((await site().edge.heartbeat({ machine: storesOn({ kind: 'nvme', name: 'Disk 9' }) })).status).toBe(200)
    await report(bootWith({ id, mac, machine, ip: '10.77.3.9' }))
    expect((await getBoot(id)).facts).toMatchObject({ machine, storage: 'nvme' })
    expect(await getBoot(id)).toMatchObject({
      hardware: { model: 'Maker Desk 7', processors: 8, memoryGib: 2 ** 21, networkCard: 'e1000e 8086:15b8' },
      storage: 'nvme',
    })
    expect(await columnsOf(id)).toEqual({ ...columns, storage: 'nvme' })
    // Its edge has restarted, and does not know any more.
    expect((await site().edge.heartbeat({ machine: storesOn(undefined) })).status).toBe(200)
    await report(bootWith({ id, mac, revision: 2 }))
    expect((await getBoot(id)).facts).toMatchObject({ machine: null, storage: 'nvme' })
    expect(await columnsOf(id)).toEqual({ ...columns, storage: 'nvme' })
    const bare = randomUUID()
    await report(bootWith({ id: bare, mac, machine: { processors: 1, memoryMib: 1 } }))
    const unknown = { card: null, driver: null, linkMbit: null, model: null }
    expect((await getBoot(bare)).facts).toMatchObject({
      machine: { processors: 1, memoryMib: 1, ...unknown },
      storage: null,
    })
    expect((await columnsOf(bare))?.networkCard).toBeNull()
  })

  test('changes after the boot is over, and the highest revision wins in whatever order they come', async () => {
    const id = randomUUID()
    const at = (revision: number) =>
      bootWith({ id, mac, revision, guest: guestWith({ writeCache: cache(10 * revision) }) })
    await report(at(1), at(3))
    await report(at(2))
    expect(await getBoot(id)).toMatchObject({ outcome: 'ready', writeCache: { percent: 30 } })
  })

  test('is taken at the full size of a report, a hundred in a batch', async () => {
    const steps = Array.from({ length: 24 }, (_, index) => ({
      group: 'unit' as const,
      name: `a-unit-with-a-long-name-${index}.service`.slice(0, 32),
      startUs: 1_000_000 + index,
      durationUs: 40_000_000,
    }))
    const boots = Array.from({ length: 100 }, () => {
      const boot = bootWith({ id: randomUUID(), mac, guest: guestWith({ steps, writeCache: cache(1) }) })
      return { ...boot, vendorClass: ' '.repeat(64), userClass: ' '.repeat(64) }
    })
    const filled = boots.map((boot) => fill(boot))
    expect(Buffer.byteLength(JSON.stringify(filled[0]))).toBeGreaterThan(bootReportSizeMax - 300)
    await report(...filled)
    expect((await getBoot(filled[99]?.id ?? '')).guest?.steps).toHaveLength(24)
  })

  test('in numbers that no clock has does no harm', async () => {
    const id = randomUUID()
    const far = Number.MAX_SAFE_INTEGER
    const guest = guestWith({
      kernelStartUs: far,
      steps: [{ group: 'kernel', name: 'kernel', startUs: far, durationUs: far }],
      writeCache: { usedBytes: far, sizeBytes: 1, atUs: far },
    })
    await report(bootWith({ id, mac, guest }))
    expect(await getBoot(id)).toMatchObject({
      guest: { steps: [{ startUs: far }] },
      writeCache: { percent: 100, level: 'full' },
    })
  })
})

/** Adds as many phases as fit into a report of the maximum size. */
function fill(boot: BootReport): BootReport {
  const [phase] = boot.phases
  if (!phase) throw new Error('a boot without phases')
  const names = ['dhcp', 'nbp', 'loader', 'stage1', 'breather', 'stage2', 'ready'] as const
  let filled = { ...boot, phases: [] as BootReport['phases'] }
  for (const name of names) {
    const more = { ...filled, phases: [...filled.phases, { ...phase, name }] }
    if (Buffer.byteLength(JSON.stringify(more)) > bootReportSizeMax) break
    filled = more
  }
  return bootReport.parse(filled)
}

describe('the write cache', () => {
  test.each([
    [79, 'ok'],
    [80, 'warning'],
    [94, 'warning'],
    [95, 'critical'],
    [99, 'critical'],
    [100, 'full'],
  ])('at %s %% is %s', async (used, level) => {
    const id = randomUUID()
    await report(bootWith({ id, mac, guest: guestWith({ writeCache: cache(used) }) }))
    expect((await getBoot(id)).writeCache).toMatchObject({ percent: used, level })
    expect((await getDevice()).lastBoot?.writeCache).toMatchObject({ percent: used, level })
  })

  test('is where the edge keeps it, in the state and with the forecast that the edge says', async () => {
    const id = randomUUID()
    const held = { class: 'edge', state: 'stopped', fullInSeconds: 0 } as const
    await report(bootWith({ id, mac, guest: guestWith({ writeCache: { ...cache(100), ...held } }) }))
    const writeCache = { ...held, percent: 100, level: 'full' }
    expect((await getBoot(id)).writeCache).toMatchObject(writeCache)
    expect((await getDevice()).lastBoot?.writeCache).toMatchObject(writeCache)
    await report(bootWith({ id, mac, revision: 2 }))
    expect((await getBoot(id)).writeCache).toMatchObject(writeCache)
  })

  test('is what devices are filtered by, and a new boot begins with none', async () => {
    const { macs } = site().tenant
    const levels = [20, 85, 96, 100]
    const boots = levels.map((used, index) =>
      bootWith({
        id: randomUUID(),
        mac: macs[index] ?? '',
        guest: guestWith({ writeCache: cache(used) }),
      }),
    )
    await report(...boots)
    const namesOf = async (writeCache: string) =>
      (await site().query<{ items: DeviceSummary[] }>('device.list', { writeCache })).items.map(({ name }) => name)
    expect(await namesOf('warning')).toEqual(['pc-02', 'pc-03', 'pc-04'])
    expect(await namesOf('critical')).toEqual(['pc-03', 'pc-04'])
    expect(await namesOf('full')).toEqual(['pc-04'])
    const { outcome: _none, ...next } = bootWith({ id: randomUUID(), mac: macs[3] ?? '' })
    expect(await getBoot(boots[3]?.id ?? '')).toMatchObject({ isLastBoot: true })
    await report({ ...next, startedUnixMs: next.startedUnixMs + 30_000 })
    expect(await namesOf('full')).toEqual([])
    expect(await getBoot(boots[3]?.id ?? '')).toMatchObject({
      isLastBoot: false,
      writeCache: { level: 'full' },
    })
    expect(await getBoot(next.id)).toMatchObject({ isLastBoot: true, writeCache: null })
  })
})

test('a boot that failed has for each cause a sentence, a remedy and the device’s text', async () => {
  for (const cause of bootCauses) {
    const id = randomUUID()
    const outcome = { kind: 'failed' as const, phase: 'breather' as const, cause, text: 'made for 6.1.0-25' }
    await report(bootWith({ id, mac, outcome }))
    const boot = await getBoot(id)
    expect(boot).toMatchObject({ outcome: 'failed', failedCause: cause, deviceState: { state: 'failed' } })
    expect(boot.cause).toEqual({
      sentence: expect.stringMatching(/^[A-Z].*\.$/),
      remedy: expect.stringMatching(/^[A-Z].*\.$/),
      deviceText: 'made for 6.1.0-25',
    })
  }
})

describe('what a device does now', () => {
  const now = async () => (await getDevice()).now
  const begin = '2026-11-20T11:59:00.000Z'

  test('is not known before its first boot', async () => {
    expect(await now()).toEqual({ state: 'unknown', since: null })
  })

  test('is booting while its edge is heard of, and unknown when that is away', async () => {
    const { outcome: _none, ...boot } = bootWith({ id: randomUUID(), mac })
    await report(boot)
    expect(await now()).toEqual({ state: 'booting', since: begin })
    site().api.clock.advance(edgeOnlineWithinMs)
    expect(await now()).toEqual({ state: 'unknown', since: null })
    await site().edge.heartbeat()
    expect(await now()).toEqual({ state: 'booting', since: begin })
  })

  test.each([
    [{ kind: 'ready' as const }, { state: 'running', since: '2026-11-20T11:59:03.000Z' }],
    [
      { kind: 'failed' as const, phase: 'stage2' as const, cause: 'write_cache_full' as const },
      { state: 'failed', since: '2026-11-20T11:59:03.000Z' },
    ],
    [
      { kind: 'silent' as const, phase: 'loader' as const },
      { state: 'unknown', since: null },
    ],
    [{ kind: 'superseded' as const }, { state: 'unknown', since: null }],
    [{ kind: 'local_disk' as const }, { state: 'local_disk', since: '2026-11-20T11:59:03.000Z' }],
  ])('after %j is %j', async (outcome, expected) => {
    await report(bootWith({ id: randomUUID(), mac, outcome }))
    expect(await now()).toEqual(expected)
  })

  test('is not heard since its edge heard it last, and running again once it is', async () => {
    const boot = bootWith({ id: randomUUID(), mac })
    await report({ ...boot, revision: 2, silentSinceUs: 7_000_000 })
    expect(await now()).toEqual({ state: 'not_heard', since: '2026-11-20T11:59:07.000Z' })
    expect(await getBoot(boot.id)).toMatchObject({ deviceState: { state: 'not_heard' } })
    await report({ ...boot, revision: 3 })
    expect(await now()).toMatchObject({ state: 'running' })
  })

  test('is not taken from boots that never happened', async () => {
    await report(bootWith({ id: randomUUID(), mac, generated: true }))
    expect(await now()).toEqual({ state: 'unknown', since: null })
  })
})
