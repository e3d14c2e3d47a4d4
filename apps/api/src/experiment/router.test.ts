import { randomUUID } from 'node:crypto'
import { inOrganization } from '@bootfarm/db'
import type { BootReport } from '@bootfarm/proto/uplink'
import { describe, expect, test } from 'vitest'
import { bootWith, type EdgeClient } from '../../test/edge-client.ts'
import { useTestSite } from '../../test/test-site.ts'
import { countObjectives } from '../alert/watch/count-objectives.ts'
import type { BootDetail } from '../boot/schema.ts'
import type { CollectionDetail } from '../collection/schema.ts'
import { watchBoots } from '../finding/watch-boots.ts'
import { advanceExperiments } from './advance-experiments.ts'
import type { ExperimentDetail, TrialView } from './schema.ts'

const site = useTestSite('admin')
const secondUs = 1_000_000
const counts = { bytesIn: 0, bytesOut: 0, packetsIn: 0, packetsOut: 0, retries: 0, missingFragments: 0, reads: 0 }

const factors = [{ setting: 'read-limit', values: ['4k'] }]
const input = (changes: object = {}) => ({
  siteId: site().tenant.siteId,
  name: 'Read sizes',
  deviceIds: [site().deviceId],
  factors,
  repetitions: 7,
  atOnce: 1,
  ...changes,
})
const create = (changes: object = {}) => site().mutate<ExperimentDetail>('experiment.create', input(changes))
const refused = (changes: object) => site().tryMutation('experiment.create', input(changes))
const get = (experimentId: string) => site().query<ExperimentDetail>('experiment.get', { experimentId })
const trials = async (experimentId: string, more: object = {}) =>
  (await site().query<{ items: TrialView[] }>('experiment.trials', { experimentId, limit: 100, ...more })).items
const change = async (step: string, experimentId: string, more: object = {}) => {
  const { revision } = await get(experimentId)
  return site().mutate<ExperimentDetail>(`experiment.${step}`, { experimentId, revision, ...more })
}
const collection = () => site().query<CollectionDetail>('collection.get', { collectionId: site().tenant.collectionId })

/** As the job does, with the rights that the API has; twice at once, as two processes do. */
async function advance(ms = 3_000): Promise<void> {
  site().api.clock.advance(ms)
  const context = { db: site().api.serverDb, clock: site().api.clock.read }
  await Promise.all([advanceExperiments(context), advanceExperiments(context)])
}

/** The settings that the device's next boot gets, and what names them in its report. */
async function given(edge?: EdgeClient, deviceId = site().deviceId) {
  const state = await site().state(edge)
  const device = state.devices.find(({ id }) => id === deviceId)
  const trial = state.trials?.find((one) => one.deviceId === deviceId)
  const tuning = trial?.tuning ?? device?.tuning
  return { trial: trial?.id, settings: tuning === undefined ? [] : (state.tunings?.[tuning] ?? []), state }
}

/** The device boots, and its edge reports that. */
async function boot(seconds: number, changes: Partial<BootReport> = {}): Promise<string> {
  const id = randomUUID()
  const phase = { ...counts, source: 'observed' as const }
  await site().report(
    bootWith({
      id,
      mac: site().mac,
      deviceId: site().deviceId,
      vdiskId: site().tenant.vdiskId,
      versionId: site().tenant.versionId,
      startedUnixMs: site().api.clock.now.getTime() - Math.round(seconds * 1000),
      phases: [{ ...phase, name: 'stage2', startUs: 0, durationUs: Math.round(seconds * secondUs) }],
      ...changes,
    }),
  )
  return id
}

/** Boots the device until the experiment is over; the small reads take a second more. */
async function run(id: string): Promise<string[][]> {
  const orders: string[][] = []
  for (let round = 0; round < 40; round += 1) {
    await advance()
    const { trial, settings } = await given()
    if (!trial) break
    orders.push(settings)
    await boot((settings.includes('read-limit=4k') ? 11 : 10) + round / 1000, { trial })
    await advance()
  }
  expect((await get(id)).state).toBe('done')
  return orders
}

describe('an experiment', () => {
  test('boots its device with each cell in each repetition, and says which is slower', async () => {
    const { id, cells, counts: before } = await create()
    expect(cells.map(({ settings }) => settings)).toEqual([[], ['read-limit=4k']])
    expect(before.waiting).toBe(14)
    const orders = await run(id)
    expect(orders).toHaveLength(14)
    for (let block = 0; block < 14; block += 2)
      expect(orders.slice(block, block + 2).toSorted()).toEqual([[], ['read-limit=4k']])
    const done = await get(id)
    expect(done).toMatchObject({ reason: null, counts: { ready: 14 }, recommendation: { kind: 'keep', cell: null } })
    expect(done.cells[1]).toMatchObject({ reference: 0, readyCount: 7, pairCount: 7, failsMore: false })
    expect(done.cells[1]?.difference?.us).toBeGreaterThan(0.98 * secondUs)
    expect(done.cells[1]?.difference?.isClear).toBe(true)
    expect(done.cells[1]?.phasesUs.stage2).toBeGreaterThan(11 * secondUs)
    expect((await site().state()).trials).toBeUndefined()
    const slower = await trials(id, { cell: 1 })
    expect(slower).toHaveLength(7)
    expect(slower.every(({ bootId, title }) => bootId !== null && title === 'reads up to 4 KB')).toBe(true)
  })

  test('asks a device to boot in the state that gives it the settings', async () => {
    await create()
    await advance()
    const { trial, state } = await given()
    expect(trial).toBeDefined()
    expect(state.powerOns.map(({ deviceId }) => deviceId)).toEqual([site().deviceId])
    await boot(10, { trial })
    const { trial: none } = await given()
    expect(none).toBeUndefined()
    await advance()
    const next = await given()
    expect(next.trial).not.toBe(trial)
    // It runs by now.
    expect(next.state.powerOrders).toMatchObject([{ deviceId: site().deviceId, order: 'restart' }])
  })

  test('counts no boot that is not its own, and the first one of a trial only', async () => {
    const { id } = await create()
    await advance()
    const { trial } = await given()
    await boot(1)
    await boot(1, { trial: randomUUID() })
    await boot(1, { trial, deviceId: site().tenant.deviceIds[1] })
    await advance()
    expect((await get(id)).counts).toMatchObject({ ready: 0, ordered: 1 })
    const first = await boot(20, { trial })
    await boot(1, { trial })
    await advance()
    expect(await trials(id, { state: 'ready' })).toMatchObject([{ bootId: first, durationUs: 20 * secondUs }])
  })

  test('keeps its boots out of findings and objectives, and each says what it was', async () => {
    const { organizationId, siteId } = site().tenant
    const { id } = await create()
    await site().mutate('objective.setOfSite', { siteId, objective: { percent: 95, seconds: 5, days: 7 } })
    await advance()
    const own = await boot(20)
    const { trial, settings } = await given()
    const tried = await boot(20, { trial })
    site().api.clock.advance(120_000)
    const { serverDb: db, clock } = site().api
    await watchBoots({ db, clock: clock.read })
    const watched = (await site().api.db.watchedBoot.findMany({ select: { bootId: true } })).map(({ bootId }) => bootId)
    expect([watched.includes(own), watched.includes(tried)]).toEqual([true, false])
    const objective = { placeId: siteId, siteId, collectionId: null, permille: 950, seconds: 5, days: 7 }
    const counted = await inOrganization(db, organizationId, (tenant) =>
      countObjectives(tenant, { organizationId, now: clock.now }, [objective]),
    )
    expect(counted.get(siteId)?.counts['1h']).toEqual({ boots: 1, missed: 1 })
    const ofBoot = async (bootId: string) => (await site().query<BootDetail>('boot.get', { bootId })).experiment
    expect(await ofBoot(tried)).toEqual({ id, name: 'Read sizes', settings })
    expect(await ofBoot(own)).toBeNull()
  })

  test('counts no boot that did not have its settings', async () => {
    const { id } = await create({ factors: [{ setting: 'read-ahead', values: ['off'] }] })
    for (let round = 0; round < 2; round += 1) {
      await advance()
      const { trial } = await given()
      await boot(9, { trial, readAhead: { hadProfile: true, askedBytes: 9, usedBytes: 0, waitedReads: 0 } })
    }
    await advance()
    const dropped = await trials(id, { state: 'dropped' })
    expect(dropped).toMatchObject([{ reason: 'it read ahead: update the initramfs of its version' }])
  })

  test('gives a device up that does not boot', async () => {
    const { id } = await create()
    for (let minute = 0; minute < 20; minute += 1) await advance(60_000)
    const ended = await get(id)
    expect(ended).toMatchObject({ state: 'done', reason: 'None of its boots counts: see their reasons.' })
    expect(ended.counts.dropped).toBe(14)
    expect((await trials(id)).some(({ reason }) => reason === 'its device does not boot')).toBe(true)
  })

  test('is paused and resumed, and stopped with the boots that it has', async () => {
    const { id } = await create()
    await advance()
    expect((await given()).trial).toBeDefined()
    await change('pause', id)
    await advance()
    expect((await given()).trial).toBeUndefined()
    await change('resume', id)
    await advance()
    await boot(9, { trial: (await given()).trial })
    await advance()
    const stopped = await change('stop', id)
    expect(stopped).toMatchObject({ state: 'stopped', counts: { ready: 1, waiting: 0, ordered: 0 } })
    expect((await given()).trial).toBeUndefined()
    const again = await site().tryMutation('experiment.resume', { experimentId: id, revision: stopped.revision })
    expect(again.status).toBe(409)
  })

  test('ends when its time is over, and its settings with it', async () => {
    const { id } = await create({ hours: 1 })
    await advance(3_590_000)
    expect((await given()).trial).toBeDefined()
    site().api.clock.advance(11_000)
    expect((await given()).trial).toBeUndefined()
    await advance()
    expect(await get(id)).toMatchObject({ state: 'done', reason: 'Its time was over before all boots.' })
  })

  test('is recommended to the collections of its devices, and can be taken back', async () => {
    const { id } = await create({ factors: [{ setting: 'read-limit', values: [null, '4k', 'off'] }] })
    await change('stop', id)
    const { revision } = await get(id)
    expect((await site().tryMutation('experiment.applyCell', { experimentId: id, revision, cell: 0 })).status).toBe(400)
    const applied = await change('applyCell', id, { cell: 1 })
    expect(applied.applied).toMatchObject({ cell: 1 })
    expect((await collection()).bootSettings).toEqual(['read-limit=4k'])
    expect((await given()).settings).toEqual(['read-limit=4k'])
    const entry = await site().api.db.auditEntry.findFirstOrThrow({
      where: { objectId: site().tenant.collectionId, action: 'experiment.applyCell' },
    })
    expect(entry).toMatchObject({ before: { bootSettings: [] }, after: { bootSettings: ['read-limit=4k'] } })
    const { id: collectionId, revision: seen } = await collection()
    await site().mutate('collection.update', { collectionId, revision: seen, bootSettings: [] })
    expect((await given()).settings).toEqual([])
  })

  test('changes only the settings that it varies', async () => {
    const { id: collectionId, revision } = await collection()
    const bootSettings = ['codec=off', 'read-limit=64k']
    await site().mutate('collection.update', { collectionId, revision, bootSettings })
    await create()
    const seen = new Set<string>()
    for (let round = 0; round < 2; round += 1) {
      await advance()
      const { trial, settings } = await given()
      seen.add(settings.join(' '))
      await boot(9, { trial })
    }
    expect([...seen].toSorted()).toEqual(['codec=off read-limit=4k', 'codec=off read-limit=64k'])
  })
})

describe('who starts an experiment', () => {
  test.each([
    ['a value that is none', { factors: [{ setting: 'read-limit', values: ['5k'] }] }, 'read-limit takes off'],
    ['a setting twice', { factors: [factors[0], factors[0]] }, 'varied once'],
    [
      'too many boots',
      {
        repetitions: 100,
        factors: [{ setting: 'mtu', values: Array.from({ length: 12 }, (_, index) => String(1000 + index)) }],
        deviceIds: [randomUUID(), randomUUID()],
      },
      'at most 2,000',
    ],
    [
      'a cache for several devices',
      { factors: [{ setting: 'cache', values: ['cold', 'warm'] }], atOnce: 2 },
      'one device at a time',
    ],
    ['one cell', { factors: [{ setting: 'codec', values: [null] }] }, 'This is one cell'],
    ['no device', { deviceIds: [] }, 'at least one device'],
  ])('is told what is wrong with %s', async (_, changes, words) => {
    const answer = await refused(changes)
    expect(answer.status).toBe(400)
    expect(answer.text).toContain(words)
  })

  test('cannot take devices of another site, that are disabled, or in another experiment', async () => {
    expect((await refused({ deviceIds: [randomUUID()] })).status).toBe(400)
    await create()
    const taken = await refused({ name: 'Another' })
    expect(taken.status).toBe(409)
    expect(taken.text).toContain('is in the experiment Read sizes')
    const [, second] = site().tenant.deviceIds
    await site().api.db.device.updateMany({ where: { id: second ?? '' }, data: { enabled: false } })
    expect((await refused({ deviceIds: [second] })).status).toBe(409)
  })
})

test('a file has every boot of an experiment, with its settings', async () => {
  const { id } = await create({ name: '=cmd()' })
  await advance()
  await boot(9, { trial: (await given()).trial })
  await advance()
  const { cookie, api } = site()
  const answer = await fetch(`${api.url}/api/v1/experiment-exports?experimentId=${id}`, { headers: { cookie } })
  const lines = (await answer.text()).trim().split('\r\n')
  expect(lines).toHaveLength(15)
  expect(lines.filter((line) => line.includes('"ready"'))).toHaveLength(1)
  expect(lines.some((line) => line.includes('reads up to 4 KB'))).toBe(true)
})
