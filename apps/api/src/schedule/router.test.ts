import { randomUUID } from 'node:crypto'
import type { BootReport, ScheduleRunReport } from '@bootfarm/proto/uplink'
import { beforeEach, describe, expect, test } from 'vitest'
import { bootWith } from '../../test/edge-client.ts'
import { useTestSite } from '../../test/test-site.ts'
import { keepAllSchedules } from './keep-schedules.ts'
import type { RunDetail, RunDevice, ScheduleDetail } from './schema.ts'

const site = useTestSite('operator')
/** The API's clock stands at 12:00 UTC on 20 November 2026, a Friday. */
const daily = { kind: 'cron', expression: '30 6 * * *' }
const hourMs = 3_600_000

let input: object
beforeEach(() => {
  site().api.clock.now = new Date('2026-11-20T12:00:00Z')
  const { farmId, siteId, collectionId } = site().tenant
  input = {
    farmId,
    siteId,
    name: 'Mornings',
    power: 'wake_on_lan',
    ratePerMinute: 60,
    when: daily,
    timeZone: 'Europe/Berlin',
    targets: [{ kind: 'collection', collectionId }],
  }
})

const create = (changes: object = {}) => site().mutate<ScheduleDetail>('schedule.create', { ...input, ...changes })
const refused = (changes: object, procedure = 'schedule.create') =>
  site().tryMutation(procedure, { ...input, ...changes })
const keep = () => keepAllSchedules({ db: site().api.db, clock: site().api.clock.read })
const orders = async () => (await site().state()).schedules ?? []
const runs = async (scheduleId: string) =>
  (await site().query<{ items: RunDetail[] }>('schedule.runs', { scheduleId })).items
const devices = async (runId: string) =>
  (await site().query<{ items: RunDevice[] }>('schedule.runDevices', { runId })).items
const report = (run: Partial<ScheduleRunReport> & Pick<ScheduleRunReport, 'scheduleId' | 'instantUnixMs'>) =>
  site().send([{ type: 'schedule_run', run: { state: 'running', devices: [], ...run } }])
const sent = (index: number, atUnixMs: number) => ({
  deviceId: site().tenant.deviceIds[index] ?? '',
  atUnixMs,
  result: 'sent' as const,
})
const boot = (index: number, startedUnixMs: number, changes: Partial<BootReport> = {}) =>
  bootWith({ id: randomUUID(), mac: site().tenant.macs[index] ?? '', startedUnixMs, ...changes })

describe('a schedule', () => {
  test('is made, read, listed, changed, switched off and on, and removed', async () => {
    const made = await create()
    expect(made).toMatchObject({
      name: 'Mornings',
      enabled: true,
      when: daily,
      revision: 1,
      lastRun: null,
      wrongClocks: [],
      nextInstant: '2026-11-21T05:30:00.000Z',
      targets: [{ kind: 'collection', name: 'Lab' }],
    })
    const { id: scheduleId } = made
    expect(await site().query('schedule.get', { scheduleId })).toEqual(made)
    const { farmId, siteId, deviceIds } = site().tenant
    for (const place of [{}, { siteId }, { farmId }, { enabled: true }])
      expect(await site().query('schedule.list', place)).toMatchObject({ items: [{ id: scheduleId }] })
    expect(await site().query('schedule.list', { enabled: false })).toMatchObject({ items: [] })
    const targets = [
      { kind: 'device', deviceId: deviceIds[1] },
      { kind: 'tag', tag: 'lab' },
    ]
    const changed = await site().mutate<ScheduleDetail>('schedule.update', {
      ...input,
      scheduleId,
      revision: 1,
      name: 'Lab',
      siteId: null,
      targets,
      ratePerMinute: 7,
      when: { kind: 'once', at: '2026-12-24T06:30' },
    })
    expect(changed).toMatchObject({
      name: 'Lab',
      revision: 2,
      nextInstant: '2026-12-24T05:30:00.000Z',
      siteName: null,
      when: { kind: 'once', at: '2026-12-24T06:30' },
      ratePerMinute: 7,
      targets: [
        { kind: 'device', deviceId: deviceIds[1] },
        { kind: 'tag', tag: 'lab' },
      ],
    })
    const off = { scheduleId, revision: 2, enabled: false }
    expect(await site().mutate('schedule.setEnabled', off)).toMatchObject({
      enabled: false,
      nextInstant: null,
    })
    const on = { scheduleId, revision: 3, enabled: true }
    expect(await site().mutate('schedule.setEnabled', on)).toMatchObject({ enabled: true, revision: 4 })
    await site().mutate('schedule.remove', { scheduleId, revision: 4 })
    expect(await site().tryQuery('schedule.get', { scheduleId })).toMatchObject({ status: 404 })
  })

  test.each([
    [{ name: ' ' }, /Enter a name/],
    [{ timeZone: 'Mars/Olympus' }, /IANA/],
    [{ when: { kind: 'cron', expression: '61 * * * *' } }, /five fields.*minute: 61/],
    [{ when: { kind: 'cron', expression: '* * * * * *' } }, /five fields/],
    [{ when: { kind: 'cron', expression: '0 0 30 2 *' } }, /30 February/],
    [{ when: { kind: 'once', at: 'tomorrow' } }, /2026-12-24T06:30/],
    [{ when: { kind: 'once', at: '2027-02-30T06:30' } }, /30 February/],
    [{ when: { kind: 'once', at: '2026-11-20T12:59' } }, /has passed/],
    [{ ratePerMinute: 0 }, /at least one device/],
    [{ ratePerMinute: 6001 }, /at most 6000/],
    [{ targets: [] }, /at least one device, collection or tag/],
    [{ targets: [{ kind: 'device', deviceId: randomUUID() }] }, /device of another site/],
  ])('with %j is refused with a sentence', async (changes, sentence) => {
    const answer = await refused(changes)
    expect([answer.status, answer.code]).toEqual([400, 'invalid'])
    expect(answer.text).toMatch(sentence)
  })

  test('takes no name twice, and no change to what somebody else has changed meanwhile', async () => {
    const { id: scheduleId } = await create()
    expect(await refused({})).toMatchObject({ status: 409, code: 'conflict' })
    await site().mutate('schedule.update', { ...input, scheduleId, revision: 1, ratePerMinute: 5 })
    for (const [procedure, change] of [
      ['schedule.update', {}],
      ['schedule.setEnabled', { enabled: false }],
      ['schedule.remove', {}],
    ] as const) {
      const answer = await refused({ ...change, scheduleId, revision: 1 }, procedure)
      expect([answer.status, answer.text]).toEqual([409, expect.stringContaining('revision 2')])
    }
  })

  test('names nothing of another organization, which is refused like what there is not', async () => {
    const { tenant: foreign } = await site().other('owner')
    const [other, absent] = [foreign.collectionId, randomUUID()].map((collectionId) =>
      refused({ targets: [{ kind: 'collection', collectionId }] }),
    )
    expect((await other)?.text).toBe((await absent)?.text)
    for (const farmId of [foreign.farmId, randomUUID()])
      expect(await refused({ farmId, siteId: null })).toMatchObject({ status: 404 })
    expect(await refused({ siteId: foreign.siteId })).toMatchObject({ status: 404 })
  })

  test('shows its next instants, with what DST does to them, and how many devices it starts', async () => {
    site().api.clock.now = new Date('2027-03-27T00:00:00Z')
    const preview = await site().query('schedule.preview', {
      ...input,
      when: { kind: 'cron', expression: '30 2 * * *' },
    })
    expect(preview).toMatchObject({
      instants: [
        { at: '2027-03-27T01:30:00.000Z', local: '2027-03-27T02:30', note: null },
        { at: '2027-03-28T01:00:00.000Z', local: '2027-03-28T03:00', note: 'moved' },
        { at: '2027-03-29T00:30:00.000Z', local: '2027-03-29T02:30', note: null },
        ...Array(7).fill({ note: null }),
      ],
      deviceCount: site().tenant.deviceIds.length,
      skippedCount: 0,
    })
  })
})

describe('the edges’ state', () => {
  test('is each device that a schedule names, once, and its instants for 30 days at least', async () => {
    const { organizationId, deviceIds, collectionId } = site().tenant
    await site().api.db.device.updateMany({
      where: { organizationId, id: deviceIds[2] ?? '' },
      data: { tags: ['lab', 'x'] },
    })
    const targets = [
      { kind: 'device', deviceId: deviceIds[0] },
      { kind: 'tag', tag: 'lab' },
    ]
    const { id } = await create({ targets })
    const all = await create({
      name: 'All',
      targets: [...targets, { kind: 'collection', collectionId }],
      siteId: null,
    })
    const state = await site().state()
    const [order, orderOfAll] = state.schedules ?? []
    expect(order).toMatchObject({ id, action: 'power_on', power: 'wake_on_lan', ratePerMinute: 60 })
    expect(order?.devices.map((index) => state.devices[index]?.id).sort()).toEqual([deviceIds[0], deviceIds[2]].sort())
    expect(orderOfAll).toMatchObject({ id: all.id, devices: state.devices.map((_, index) => index) })
    expect(order?.instants).toHaveLength(37)
    expect(order?.instants[0]).toBe(Date.parse('2026-11-21T05:30:00Z'))
  })

  test('changes once a week, not with each request, and reaches 30 days ahead at any time', async () => {
    await create()
    const first = await site().state()
    for (let day = 0; day < 8; day += 1) {
      site().api.clock.advance(24 * hourMs)
      await keep()
      const [order] = await orders()
      const last = order?.instants.at(-1) ?? 0
      expect(last).toBeGreaterThan(site().api.clock.now.getTime() + 29 * 24 * hourMs)
    }
    expect((await site().state()).counter - first.counter).toBe(1)
  })

  test('of a schedule each minute is 1,024 instants, and never less than half of them', async () => {
    await create({ when: { kind: 'cron', expression: '* * * * *' } })
    expect((await orders())[0]?.instants).toHaveLength(1024)
    for (let round = 0; round < 3; round += 1) {
      site().api.clock.advance(4 * hourMs)
      await keep()
      const ahead = (await orders())[0]?.instants.filter((at) => at > site().api.clock.now.getTime()) ?? []
      expect(ahead.length).toBeGreaterThanOrEqual(510)
    }
  })

  test('ends when a schedule is switched off, removed or over', async () => {
    const { id: scheduleId } = await create()
    await site().mutate('schedule.setEnabled', { scheduleId, revision: 1, enabled: false })
    expect(await orders()).toEqual([])
    await create({ name: 'Once', when: { kind: 'once', at: '2026-11-20T14:00' } })
    expect(await orders()).toHaveLength(1)
    site().api.clock.advance(30 * hourMs)
    await keep()
    await keep()
    expect(await orders()).toEqual([])
  })
})

describe('a run', () => {
  const at = Date.parse('2026-11-21T05:30:00Z')
  const goTo = async (unixMs: number) => {
    site().api.clock.now = new Date(unixMs)
    await keep()
  }

  test('goes from its instant over power-ons to boots, whichever is reported first', async () => {
    const { id: scheduleId } = await create()
    await goTo(at + 5_000)
    const [waiting] = await runs(scheduleId)
    expect(waiting).toMatchObject({ state: 'waiting', byHand: false, deviceCount: site().tenant.macs.length })
    const runId = waiting?.id ?? ''
    const first = boot(0, at + 100)
    await site().report({ ...first, outcome: undefined, revision: 1 } as unknown as BootReport)
    await report({
      scheduleId,
      instantUnixMs: at,
      startedUnixMs: at + 50,
      devices: [sent(0, at + 60), sent(1, at + 1060)],
    })
    expect((await devices(runId)).map(({ state }) => state).sort()).toEqual(
      ['booting', 'sent', ...Array(site().tenant.macs.length - 2).fill('waiting')].sort(),
    )
    await site().report({ ...first, revision: 9 }, boot(1, at + 1100, { outcome: { kind: 'silent' } } as never))
    expect(await site().query('schedule.run', { runId })).toMatchObject({
      state: 'running',
      startedAt: new Date(at + 50).toISOString(),
      counts: { ready: 1, waiting: site().tenant.macs.length - 2 },
    })
    const [readyDevice] = await site()
      .query<{ items: RunDevice[] }>('schedule.runDevices', { runId, state: 'ready' })
      .then(({ items }) => items)
    expect(readyDevice?.boot).toMatchObject({ id: first.id, outcome: 'ready' })
    const rest = site()
      .tenant.macs.slice(2)
      .map((_, index) => sent(index + 2, at + 2000))
    await report({ scheduleId, instantUnixMs: at, state: 'done', devices: rest })
    // The edge is done, and some of its devices have not booted yet.
    expect(await site().query('schedule.run', { runId })).toMatchObject({
      state: 'running',
      edges: { all: 1, reported: 1, missing: [] },
    })
    await goTo(at + 4 * hourMs)
    expect(await site().query('schedule.run', { runId })).toMatchObject({
      state: 'done',
      counts: { sent: 0, ready: 1 },
    })
    expect(await site().query('schedule.get', { scheduleId })).toMatchObject({ lastRun: { id: runId } })
  })

  test('that nobody reports is missed in the end, and still counts when its edge comes back', async () => {
    const { id: scheduleId } = await create()
    await site().api.db.edge.updateMany({
      where: { id: site().edge.edgeId },
      data: { heartbeatAt: new Date(at - 60_000) },
    })
    await goTo(at + 1)
    await goTo(at + 3 * hourMs)
    const [run] = await runs(scheduleId)
    expect(run).toMatchObject({
      state: 'missed',
      reason: 'edge_away',
      counts: { not_seen: run?.deviceCount },
    })
    const started = site().tenant.macs.map((_, index) => sent(index, at + 10))
    await report({ scheduleId, instantUnixMs: at, state: 'done', devices: started })
    await site().report(boot(0, at + 20))
    expect((await runs(scheduleId))[0]).toMatchObject({ state: 'running', counts: { ready: 1, not_seen: 0 } })
    // Its time was over long ago: devices without a boot are not waited for.
    await keep()
    const notSeen = started.length - 1
    expect((await runs(scheduleId))[0]).toMatchObject({ state: 'done', counts: { ready: 1, not_seen: notSeen } })
  })

  test('is not done before each of its edges has reported, and its figures do not change after it', async () => {
    const other = await site().enrolEdge()
    const { id: scheduleId } = await create()
    await goTo(at + 1)
    const all = site().tenant.macs.length
    const devices = site().tenant.macs.map((_, index) => sent(index, at + 10))
    await report({ scheduleId, instantUnixMs: at, state: 'done', devices: devices.slice(1) })
    const boots = devices.map((_, index) => boot(index, at + 20))
    await site().report(...boots.slice(1))
    const run = async () => (await runs(scheduleId))[0]
    expect(await run()).toMatchObject({ state: 'running', counts: { ready: all - 1, waiting: 1 } })
    const of = { scheduleId, instantUnixMs: at, state: 'running' as const, devices: devices.slice(0, 1) }
    await site().send([{ type: 'schedule_run', run: of }], other)
    const [first] = boots
    if (!first) throw new Error('the site has devices')
    await site().send([{ type: 'boot', boot: first }], other)
    const { id: runId = '' } = (await run()) ?? {}
    const edges = { all: 2, reported: 1, missing: [{ edgeId: other.edgeId, state: 'running' }] }
    expect(await site().query('schedule.run', { runId })).toMatchObject({ state: 'running', edges })
    await site().send([{ type: 'schedule_run', run: { ...of, state: 'done', devices: [] } }], other)
    const done = await site().query<RunDetail>('schedule.run', { runId })
    expect(done).toMatchObject({ state: 'done', counts: { ready: all }, edges: { all: 2, reported: 2, missing: [] } })
    await site().report({ ...boots[1], revision: 9, outcome: { kind: 'superseded' } } as BootReport)
    await site().send([{ type: 'withdrawn', bootId: first.id }], other)
    expect(await site().query('schedule.run', { runId })).toEqual(done)
  })

  test('does not wait for an edge that is away, and names it', async () => {
    const { api, tenant } = site()
    const other = await site().enrolEdge()
    const { id: scheduleId } = await create()
    await goTo(at + 1)
    const devices = tenant.macs.slice(1).map((_, index) => sent(index + 1, at + 10))
    await report({ scheduleId, instantUnixMs: at, state: 'done', devices })
    await site().report(...devices.map((_, index) => boot(index + 1, at + 20)))
    const heard = (edgeId: string, unixMs: number) =>
      api.db.edge.updateMany({ where: { id: edgeId }, data: { heartbeatAt: new Date(unixMs) } })
    await heard(other.edgeId, at + 60_000)
    await heard(site().edge.edgeId, at + 10 * 60_000)
    await goTo(at + 10 * 60_000)
    expect((await runs(scheduleId))[0]).toMatchObject({ state: 'running', counts: { waiting: 1 } })
    await goTo(at + 11 * 60_000)
    const [run] = await runs(scheduleId)
    expect(run).toMatchObject({ state: 'done', counts: { ready: devices.length, not_seen: 1, waiting: 0 } })
    const since = new Date(at + 60_000).toISOString()
    const missing = [{ edgeId: other.edgeId, state: 'away', since }]
    expect(await site().query('schedule.run', { runId: run?.id })).toMatchObject({ edges: { reported: 1, missing } })
    const [lost] = (
      await site().query<{ items: RunDevice[] }>('schedule.runDevices', { runId: run?.id, state: 'not_seen' })
    ).items
    expect(lost).toMatchObject({ deviceId: tenant.deviceIds[0], reason: 'edge_away' })
    // What it did shows on its device; the figures that were told stay.
    const late = { scheduleId, instantUnixMs: at, state: 'done' as const, devices: [sent(0, at + 10)] }
    await site().send([{ type: 'schedule_run', run: late }], other)
    expect((await runs(scheduleId))[0]).toEqual(run)
  })

  test('that an edge has missed shows the reason, unless another edge has started it', async () => {
    const { id: scheduleId } = await create()
    await goTo(at + 20 * 60_000)
    await report({ scheduleId, instantUnixMs: at, state: 'missed', reason: 'late' })
    expect((await runs(scheduleId))[0]).toMatchObject({ state: 'missed', reason: 'late' })
    const other = await site().enrolEdge()
    const run = { scheduleId, instantUnixMs: at, state: 'running' as const, devices: [sent(0, at)] }
    await site().send([{ type: 'schedule_run', run }], other)
    expect((await runs(scheduleId))[0]).toMatchObject({
      state: expect.not.stringMatching('missed'),
      counts: { sent: 1 },
    })
  })

  test('gives the reason for each device that was not started', async () => {
    const { organizationId, deviceIds } = site().tenant
    const off = { organizationId, id: deviceIds[0] ?? '' }
    await site().api.db.device.updateMany({ where: off, data: { enabled: false } })
    const { id: scheduleId } = await create({ power: 'hook' })
    await goTo(at + 1)
    const failed = { ...sent(1, at + 1), result: 'hook_failed' as const, text: 'exit 3: <b>no route</b>' }
    await report({
      scheduleId,
      instantUnixMs: at,
      devices: [failed, { ...sent(2, at + 2), result: 'booting_already' }],
    })
    const [run] = await runs(scheduleId)
    const byId = new Map((await devices(run?.id ?? '')).map((device) => [device.deviceId, device]))
    expect(byId.get(deviceIds[0] ?? '')).toMatchObject({ state: 'skipped', reason: 'disabled' })
    expect(byId.get(deviceIds[1] ?? '')).toMatchObject({
      state: 'failed',
      reason: 'hook_failed',
      text: failed.text,
    })
    expect(byId.get(deviceIds[2] ?? '')).toMatchObject({ state: 'skipped', reason: 'booting_already' })
  })

  test('can be started by hand, also of a schedule that is off, and reaches the edge at once', async () => {
    const { id: scheduleId } = await create({ enabled: false })
    const { runId } = await site().mutate<{ runId: string }>('schedule.runNow', { scheduleId })
    expect(await orders()).toMatchObject([{ id: scheduleId, instants: [site().api.clock.now.getTime()] }])
    expect(await site().query('schedule.run', { runId })).toMatchObject({ byHand: true, state: 'waiting' })
    const [first, second] = [await site().mutate('schedule.runNow', { scheduleId }), await runs(scheduleId)]
    expect(first).not.toEqual({ runId })
    expect(second).toHaveLength(2)
  })

  test('of a boot that was none is without it again', async () => {
    const { id: scheduleId } = await create()
    await goTo(at + 5_000)
    const withdrawn = boot(0, at + 100)
    await report({ scheduleId, instantUnixMs: at, devices: [sent(0, at + 60)] })
    const { outcome: _, ...going } = withdrawn
    await site().report(going as BootReport)
    await site().send([{ type: 'withdrawn', bootId: withdrawn.id }])
    expect((await runs(scheduleId))[0]).toMatchObject({ counts: { sent: 1, booting: 0 } })
  })

  test('keeps a device that was deleted since, without its name', async () => {
    const { id: scheduleId } = await create()
    await goTo(at + 1)
    const [deviceId = ''] = site().tenant.deviceIds
    await site().mutate('device.remove', { deviceId, revision: 1 })
    const [run] = await runs(scheduleId)
    const gone = (await devices(run?.id ?? '')).filter(({ name }) => name === null)
    expect(gone.map((device) => device.deviceId)).toEqual([deviceId])
    expect((await orders())[0]?.devices).toHaveLength(site().tenant.macs.length - 1)
  })

  test('lists its devices page by page', async () => {
    const { id: scheduleId } = await create()
    await goTo(at + 1)
    const [run] = await runs(scheduleId)
    const names: string[] = []
    let cursor: string | null = null
    do {
      const page: { items: RunDevice[]; nextCursor: string | null } = await site().query('schedule.runDevices', {
        runId: run?.id,
        limit: 2,
        cursor,
      })
      names.push(...page.items.map(({ name }) => name ?? ''))
      cursor = page.nextCursor
    } while (cursor)
    expect(names).toEqual([...names].sort())
    expect(new Set(names).size).toBe(site().tenant.macs.length)
  })
})
