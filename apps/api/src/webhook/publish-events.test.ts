import { randomUUID } from 'node:crypto'
import type { BootReport } from '@bootfarm/proto/uplink'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { bootWith, guestWith } from '../../test/edge-client.ts'
import { startTestApi, type TestApi, testWebhookTargets } from '../../test/test-api.ts'
import { TestSite } from '../../test/test-site.ts'
import { deliverDue } from '../../test/webhook/deliver-due.ts'
import { type Receiver, startReceiver } from '../../test/webhook/receiver.ts'
import { noTelemetry } from '../rules/telemetry.ts'
import { keepAllSchedules } from '../schedule/keep-schedules.ts'
import type { RunDetail } from '../schedule/schema.ts'

let first: TestApi
let second: TestApi
let receiver: Receiver
let site: TestSite
let round = 0
const statements: string[] = []

beforeAll(async () => {
  first = await startTestApi({ onQuery: ({ text }) => statements.push(text) })
  second = await startTestApi({ beside: first })
})
afterAll(async () => {
  await second.close()
  await first.close()
})
beforeEach(async () => {
  first.clock.now = new Date('2026-11-20T12:00:00Z')
  receiver = await startReceiver()
  round += 1
  site = await TestSite.open(first, `events-${round}`, 'owner')
  const events = ['wave.done', 'version.promoted', 'write_cache.filling']
  await site.mutate('webhook.create', { name: 'Chat', url: receiver.url, events })
})
afterEach(async () => {
  await first.db.webhookEndpoint.deleteMany()
  await receiver.close()
})

const processes = () => [first.serverDb, second.serverDb]

/** Runs the jobs of both API processes at the same time. */
async function keepAndDeliver(): Promise<void> {
  const clock = first.clock.read
  await Promise.all(processes().map((db) => keepAllSchedules({ db, clock })))
  await Promise.all(
    processes().map((db) => deliverDue({ db, clock, webhookTargets: testWebhookTargets, telemetry: noTelemetry })),
  )
}

interface Message {
  type: string
  organizationId: string
  data: Record<string, unknown>
}

/** Returns all messages so far, after both processes have sent the due ones. */
async function told(): Promise<Message[]> {
  await keepAndDeliver()
  return receiver.received.map(({ body }) => JSON.parse(body) as Message)
}

describe('wave.done', () => {
  const at = Date.parse('2026-11-21T05:30:00Z')
  let scheduleId: string

  beforeEach(async () => {
    const { farmId, siteId, collectionId } = site.tenant
    const { id } = await site.mutate<{ id: string }>('schedule.create', {
      farmId,
      siteId,
      name: 'Mornings',
      power: 'wake_on_lan',
      ratePerMinute: 60,
      when: { kind: 'cron', expression: '30 6 * * *' },
      timeZone: 'Europe/Berlin',
      targets: [{ kind: 'collection', collectionId }],
    })
    scheduleId = id
    first.clock.now = new Date(at + 5_000)
  })

  type Result = 'sent' | 'hook_failed' | 'booting_already'
  const woken = (from: number, until?: number, result: Result = 'sent') =>
    site.tenant.deviceIds.slice(from, until).map((deviceId) => ({ deviceId, atUnixMs: at + 10, result }))
  const report = (devices: ReturnType<typeof woken>, state: 'running' | 'done' = 'running', edge = site.edge) =>
    site.send(
      [{ type: 'schedule_run', run: { scheduleId, instantUnixMs: at, startedUnixMs: at, state, devices } }],
      edge,
    )
  const boot = (index: number, changes: Partial<BootReport> = {}) =>
    bootWith({ id: randomUUID(), mac: site.tenant.macs[index] ?? '', startedUnixMs: at + 100, ...changes })
  const failed = { kind: 'failed', phase: 'nbp', cause: 'tftp_timeout', text: 'no answer' } as const

  test('is told once, when each device of the run has started, failed or been passed over', async () => {
    const all = site.tenant.macs.length
    await report([...woken(0, all - 1), ...woken(all - 1, undefined, 'booting_already')], 'done')
    expect(await told()).toEqual([])
    const last = boot(1)
    const { outcome: _, ...going } = last
    await site.report(boot(0, { outcome: failed }), going as BootReport)
    await site.report(...Array.from({ length: all - 3 }, (_unused, index) => boot(index + 2)))
    expect(await told()).toEqual([])
    await site.report({ ...last, revision: last.revision + 1 })
    const [run] = (await site.query<{ items: RunDetail[] }>('schedule.runs', { scheduleId })).items
    expect(await told()).toEqual([
      {
        type: 'wave.done',
        timestamp: expect.any(String),
        organizationId: site.tenant.organizationId,
        data: {
          scheduleId,
          scheduleName: 'Mornings',
          runId: run?.id,
          byHand: false,
          farmId: site.tenant.farmId,
          siteId: site.tenant.siteId,
          state: 'done',
          reason: null,
          instant: new Date(at).toISOString(),
          startedAt: new Date(at).toISOString(),
          devices: { all, woken: all - 1, booted: all - 2, failed: 1, notSeen: 0, skipped: 1 },
          edges: { all: 1, away: 0 },
        },
      },
    ])
    // The edge did not get the answer to its reports, and sends them all again.
    await report([...woken(0, all - 1), ...woken(all - 1, undefined, 'booting_already')], 'done')
    await site.report({ ...last, revision: last.revision + 2 })
    expect(await told()).toHaveLength(1)
  })

  test('waits for what another edge of the site may have started, until its time is over', async () => {
    const missed = { scheduleId, instantUnixMs: at, state: 'missed' as const, reason: 'late' as const }
    await site.send([{ type: 'schedule_run', run: { ...missed, devices: [] } }])
    const other = await site.enrolEdge()
    await report(woken(0, 1), 'running', other)
    await site.report(boot(0))
    expect(await told()).toEqual([])
    first.clock.advance(4 * 3_600_000)
    const notSeen = site.tenant.macs.length - 1
    const message = { type: 'wave.done', data: { devices: { woken: 1, booted: 1, failed: 0, notSeen } } }
    expect(await told()).toMatchObject([message])
    await report(woken(1), 'done', other)
    expect(await told()).toHaveLength(1)
  })

  test('says that a run was missed, and counts no device whose power command failed as woken', async () => {
    await told()
    first.clock.advance(4 * 3_600_000)
    expect(await told()).toMatchObject([
      {
        data: {
          state: 'missed',
          reason: 'edge_away',
          startedAt: null,
          devices: { woken: 0 },
          edges: { all: 1, away: 1 },
        },
      },
    ])
    const { runId } = await site.mutate<{ runId: string }>('schedule.runNow', { scheduleId })
    const instantUnixMs = first.clock.now.getTime()
    const devices = woken(0, undefined, 'hook_failed')
    await site.send([{ type: 'schedule_run', run: { scheduleId, instantUnixMs, state: 'done', devices } }])
    const failedCount = devices.length
    expect((await told())[1]).toMatchObject({
      data: { runId, byHand: true, state: 'done', devices: { woken: 0, failed: failedCount, booted: 0 } },
    })
  })
})

describe('write_cache.filling', () => {
  test('is told once for each boot and mark, of several at once the highest', async () => {
    const [mac = '', other = ''] = site.tenant.macs
    const id = randomUUID()
    const at = (revision: number, used: number, boot = { id, mac }) => {
      const held = { class: 'edge', fullInSeconds: 120 } as const
      const writeCache = { ...held, usedBytes: used, sizeBytes: 1000, atUs: 9e6 }
      return bootWith({ ...boot, revision, guest: guestWith({ writeCache }) })
    }
    await site.report(at(1, 799))
    expect(await told()).toEqual([])
    await site.report(at(2, 810))
    await told()
    await site.report(at(3, 900), at(4, 1000, { id: randomUUID(), mac: other }))
    await site.report(at(5, 500))
    await site.report(at(6, 850))
    const data = {
      bootId: id,
      mac,
      mark: 80,
      level: 'warning',
      percent: 81,
      class: 'edge',
      fullInSeconds: 120,
    }
    const messages = await told()
    expect(messages).toHaveLength(2)
    expect(messages).toMatchObject([
      { type: 'write_cache.filling', data },
      { type: 'write_cache.filling', data: { mac: other, mark: 100, level: 'full', percent: 100 } },
    ])
    expect(messages[0]?.data).toMatchObject({
      deviceId: site.tenant.deviceIds[0],
      deviceName: 'pc-01',
      edgeId: site.edge.edgeId,
      state: 'ok',
    })
  })
})

describe('version.promoted', () => {
  const files = { sizeBytes: 1_048_576, diskPath: 'linux/2.raw', commandLine: 'quiet' }
  const register = (vdiskId = site.tenant.vdiskId) =>
    site.mutate<{ id: string; revision: number }>('vdisk.registerVersion', { vdiskId, ...files })
  const free = async () => {
    const { collectionId } = site.tenant
    await site.mutate('collection.update', { collectionId, revision: 1, vdiskId: null })
  }

  test('is told of each change of what devices boot, with what they booted before', async () => {
    const { farmId, vdiskId, versionId } = site.tenant
    const { id: newer } = await register()
    const of = { farmId, vdiskId, vdiskName: 'Linux' }
    const up = { versionId: newer, versionNumber: 2, previousVersionId: versionId, previousVersionNumber: 1 }
    const down = { versionId, versionNumber: 1, previousVersionId: newer, previousVersionNumber: 2 }
    expect(await told()).toMatchObject([{ type: 'version.promoted', data: { ...of, ...up } }])
    await free()
    const { deletionId } = await site.mutate<{ deletionId: string }>('vdisk.removeVersion', {
      versionId: newer,
    })
    // Messages that wait at the same time are sent in no order.
    await told()
    await site.mutate('vdisk.restoreVersion', { deletionId })
    const messages = await told()
    expect(messages.map(({ data }) => data)).toEqual([up, down, up].map((change) => ({ ...of, ...change })))
  })

  test('is told of a first version, and not of an older one, or of a change that was refused', async () => {
    const { farmId, versionId } = site.tenant
    const { id: newest } = await register()
    expect(await told()).toHaveLength(1)
    const { deletionId } = await site.mutate<{ deletionId: string }>('vdisk.removeVersion', { versionId })
    await site.mutate('vdisk.restoreVersion', { deletionId })
    const refused = await site.tryMutation('vdisk.removeVersion', { versionId: newest })
    expect(refused.status).toBe(409)
    const { id: vdiskId } = await site.mutate<{ id: string }>('vdisk.create', { farmId, name: 'Other' })
    await register(vdiskId)
    expect((await told()).slice(1)).toMatchObject([
      { data: { vdiskId, versionNumber: 1, previousVersionId: null, previousVersionNumber: null } },
    ])
  })

  test('of two that are registered at the same time each names the one before it', async () => {
    await Promise.all([register(), register(), register()])
    const numbers = (await told()).map(({ data }) => [data.previousVersionNumber, data.versionNumber])
    expect(numbers.sort()).toEqual([
      [1, 2],
      [2, 3],
      [3, 4],
    ])
  })

  test('by a version that comes back from the trash wakes an edge that waits', async () => {
    const { id: newer } = await register()
    await free()
    const { deletionId } = await site.mutate<{ deletionId: string }>('vdisk.removeVersion', {
      versionId: newer,
    })
    const { collectionId, vdiskId, versionId } = site.tenant
    await site.mutate('collection.update', { collectionId, revision: 2, vdiskId })
    const { incarnation, counter, devices } = await site.state()
    expect(devices[0]).toMatchObject({ versionId })
    const listening = first.nextListener()
    const waiting = site.edge.state(`${incarnation}.${counter}`, 25_000)
    await listening
    await site.mutate('vdisk.restoreVersion', { deletionId })
    const { status, body } = await waiting
    expect(status).toBe(200)
    expect(JSON.parse(String(body?.payload))).toMatchObject({
      devices: expect.arrayContaining([expect.objectContaining({ versionId: newer })]),
    })
  })
})

test('a failed boot that is reported again costs a look at its event, and reads no boots', async () => {
  const boot = bootWith({
    id: randomUUID(),
    mac: site.mac,
    outcome: { kind: 'failed', phase: 'nbp', cause: 'tftp_timeout', text: 'no answer' },
  })
  const readings = async (report: BootReport) => {
    statements.length = 0
    await site.report(report)
    return statements.filter((text) => text.includes('"failedText"')).length
  }
  expect(await readings(boot)).toBe(1)
  expect(await readings({ ...boot, revision: boot.revision + 1 })).toBe(0)
  const { organizationId } = site.tenant
  expect(await first.db.webhookEvent.count({ where: { organizationId, type: 'boot.failed' } })).toBe(1)
})
