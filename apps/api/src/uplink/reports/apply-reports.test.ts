import { randomUUID } from 'node:crypto'
import type { Report } from '@bootfarm/proto/uplink'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { bootReports, bootWith, discoveredWith, EdgeClient } from '../../../test/edge-client.ts'
import { startTestApi, type TestApi } from '../../../test/test-api.ts'
import { query } from '../../../test/test-client.ts'
import { createTenant, makeJoinToken, signInAs, type TestTenant } from '../../../test/test-tenant.ts'
import type { BootDetail } from '../../boot/schema.ts'
import type { DeviceDetail } from '../../device/schema.ts'
import type { EdgeDetail } from '../../edge/schema.ts'

let api: TestApi
let tenant: TestTenant
let cookie: string
let edge: EdgeClient

beforeAll(async () => {
  api = await startTestApi()
})
beforeEach(async () => {
  tenant = await createTenant(api, `own-${randomUUID()}`)
  cookie = await signInAs(api, tenant.organizationId, 'viewer')
  edge = await EdgeClient.enrolled(api.url, await makeJoinToken(api, tenant))
})
afterAll(() => api.close())

const mac = '02:bf:00:00:00:01'
const acked = (ackedSeq: number, bootEpoch = 1) => ({ status: 200, body: { bootEpoch, ackedSeq } })
const getBoot = (bootId: string) => query<BootDetail>(api, cookie, 'boot.get', { bootId })
const changeCount = async () =>
  (await api.db.bootFeed.findUniqueOrThrow({ where: { organizationId: tenant.organizationId } })).lastChange

describe('reports', () => {
  test('are applied and shown', async () => {
    const id = randomUUID()
    const boot = bootWith({
      id,
      mac,
      vendorClass: 'PXEClient:Arch:00000:UNDI:002001',
      mtu: 1500,
      cipher: 'aegis_128l' as const,
    })
    const identity = { vdiskId: tenant.vdiskId, versionId: tenant.versionId }
    expect(await edge.reports(1, bootReports(1, [{ ...boot, ...identity }]))).toEqual(acked(1))
    expect(await getBoot(id)).toMatchObject({
      deviceId: tenant.deviceIds[0],
      deviceName: 'pc-01',
      outcome: 'ready',
      totalUs: 3_000_000,
      bytesOut: 2_000,
      retries: 2,
      lastPhase: 'stage2',
      simulated: true,
      startedAt: '2026-11-20T11:59:00.000Z',
      vdisk: { id: tenant.vdiskId, name: 'Linux', versionNumber: 1 },
      facts: {
        vendorClass: 'PXEClient:Arch:00000:UNDI:002001',
        mtuBytes: 1500,
        cipher: 'aegis_128l',
        reconnects: 0,
      },
    })
  })

  test('sent again are acknowledged and change nothing', async () => {
    const reports = bootReports(1, [bootWith({ id: randomUUID(), mac }), bootWith({ id: randomUUID(), mac })])
    await edge.reports(1, reports)
    const changes = await changeCount()
    for (let repeat = 0; repeat < 3; repeat++) expect(await edge.reports(1, reports)).toEqual(acked(2))
    expect(await changeCount()).toBe(changes)
  })

  test('are applied once when the same batch comes twice at once', async () => {
    const reports = bootReports(1, [bootWith({ id: randomUUID(), mac }), bootWith({ id: randomUUID(), mac })])
    const changes = await changeCount()
    const answers = await Promise.all([1, 2].map(() => edge.reports(1, reports)))
    for (const answer of answers) expect(answer).toEqual(acked(2))
    expect(await changeCount()).toBe(changes + 2n)
  })

  test('that overlap what is applied are applied from where it ends', async () => {
    const ids = [randomUUID(), randomUUID(), randomUUID()]
    const boots = ids.map((id) => bootWith({ id, mac }))
    await edge.reports(1, bootReports(1, boots.slice(0, 2)))
    const changes = await changeCount()
    expect(await edge.reports(2, bootReports(2, boots.slice(1)))).toEqual(acked(3))
    expect(await changeCount()).toBe(changes + 1n)
    await getBoot(ids[2] ?? '')
  })

  test('after a gap are refused with the seq that is expected, and nothing is applied', async () => {
    const id = randomUUID()
    await edge.reports(1, bootReports(1, [bootWith({ id: randomUUID(), mac })]))
    const { status, body } = await edge.reports(3, bootReports(3, [bootWith({ id, mac })]))
    expect(status).toBe(409)
    expect(body).toMatchObject({ code: 'report_gap', expectedSeq: 2 })
    await expect(getBoot(id)).rejects.toThrow('404')
  })

  test('that the edge declares lost count as applied, and as lost', async () => {
    const lostMs = Date.parse('2026-11-20T10:00:00Z')
    const lost: Report = {
      seq: 2,
      type: 'gap',
      untilSeq: 9,
      reason: 'report log full',
      fromUnixMs: lostMs,
      untilUnixMs: lostMs + 60_000,
    }
    await edge.reports(1, bootReports(1, [bootWith({ id: randomUUID(), mac })]))
    const after = bootReports(10, [bootWith({ id: randomUUID(), mac })])
    expect(await edge.reports(2, [lost, ...after])).toEqual(acked(10))
    expect(await edge.reports(2, [lost])).toEqual(acked(10))
    const seen = await query<EdgeDetail>(api, cookie, 'edge.get', { edgeId: edge.edgeId })
    expect(seen.reportsLost).toBe(8)
    expect(seen.reportGaps).toEqual([
      {
        count: 8,
        reason: 'report log full',
        declaredAt: '2026-11-20T12:00:00.000Z',
        fromAt: '2026-11-20T10:00:00.000Z',
        untilAt: '2026-11-20T10:01:00.000Z',
      },
    ])
  })

  test('that are lost more often than the page can show are all counted, and the newest are kept', async () => {
    for (let batch = 0; batch < 3; batch++) {
      const gaps = Array.from({ length: 100 }, (_, index): Report => {
        const seq = 1 + batch * 200 + index * 2
        return { seq, type: 'gap', untilSeq: seq + 1, reason: `gap ${batch * 100 + index}`, fromUnixMs: 9e15 }
      })
      expect(await edge.reports(1 + batch * 200, gaps)).toEqual(acked((batch + 1) * 200))
    }
    const seen = await query<EdgeDetail>(api, cookie, 'edge.get', { edgeId: edge.edgeId })
    expect(seen.reportsLost).toBe(600)
    expect(seen.reportGaps.map(({ reason }) => reason)).toEqual(
      Array.from({ length: 20 }, (_, index) => `gap ${299 - index}`),
    )
    // A clock that is years ahead is not believed.
    expect(seen.reportGaps[0]).toMatchObject({ fromAt: '2026-11-20T12:00:00.000Z', untilAt: null, count: 2 })
    expect(await api.db.reportGap.count({ where: { edgeId: edge.edgeId } })).toBe(100)
  })

  test('that cannot be read count as lost and hold nothing up', async () => {
    const [first, second] = [randomUUID(), randomUUID()]
    const reports = bootReports(1, [
      bootWith({ id: first, mac }),
      bootWith({ id: randomUUID(), mac: 'no address' }),
      bootWith({ id: second, mac }),
    ])
    expect(await edge.reports(1, reports)).toEqual(acked(3))
    for (const id of [first, second]) expect(await getBoot(id)).toMatchObject({ outcome: 'ready' })
    const seen = await query<EdgeDetail>(api, cookie, 'edge.get', { edgeId: edge.edgeId })
    expect(seen.reportsLost).toBe(1)
    expect(seen.reportGaps).toMatchObject([{ count: 1, fromAt: null, reason: expect.stringContaining('mac') }])
  })

  test('of each boot epoch have a count of their own', async () => {
    const one = () => bootReports(1, [bootWith({ id: randomUUID(), mac })])
    expect(await edge.reports(1, one(), 1)).toEqual(acked(1, 1))
    edge.bootEpoch = 2
    expect(await edge.reports(1, one(), 2)).toEqual(acked(1, 2))
    expect((await edge.reports(3, bootReports(3, [bootWith({ id: randomUUID(), mac })]), 1)).status).toBe(409)
  })

  test.each([
    ['seqs that are not consecutive', 1, [1, 3]],
    ['seqs that do not begin at fromSeq', 2, [1, 2]],
    ['seqs that repeat', 1, [1, 1]],
  ])('with %s are refused', async (_what, fromSeq, seqs) => {
    const reports = seqs.map((seq) => ({ ...bootReports(1, [bootWith({ id: randomUUID(), mac })])[0], seq }))
    expect((await edge.reports(fromSeq, reports as Report[])).body).toMatchObject({ code: 'invalid_body' })
  })

  test('beyond a hundred in a batch are refused', async () => {
    const boots = Array.from({ length: 101 }, () => bootWith({ id: randomUUID(), mac }))
    expect((await edge.reports(1, bootReports(1, boots))).body).toMatchObject({ code: 'invalid_body' })
    expect(await edge.reports(1, bootReports(1, boots.slice(0, 100)))).toEqual(acked(100))
  })
})

describe('a boot', () => {
  test('keeps its highest revision, in whatever order they come', async () => {
    const id = randomUUID()
    const at = (revision: number, reconnects: number) => bootWith({ id, mac, revision, reconnects })
    await edge.reports(1, bootReports(1, [at(2, 2), at(5, 5), at(4, 4)]))
    await edge.reports(4, bootReports(4, [at(3, 3)]))
    expect(await getBoot(id)).toMatchObject({ revision: 5, facts: { reconnects: 5 } })
  })

  test('of one edge is not overwritten by another edge that names its id', async () => {
    const id = randomUUID()
    const other = await EdgeClient.enrolled(api.url, await makeJoinToken(api, tenant))
    await edge.reports(1, bootReports(1, [bootWith({ id, mac })]))
    await other.reports(1, bootReports(1, [bootWith({ id, mac, revision: 9, reconnects: 9 })]))
    expect(await getBoot(id)).toMatchObject({ revision: 1, edgeId: edge.edgeId })
  })

  test('of an edge whose clock is years ahead begins when it was reported', async () => {
    const id = randomUUID()
    const startedUnixMs = Date.parse('2040-01-01T00:00:00Z')
    await edge.reports(1, bootReports(1, [bootWith({ id, mac, startedUnixMs })]))
    expect(await getBoot(id)).toMatchObject({ startedAt: api.clock.now.toISOString() })
  })

  test('of a machine whose id follows no version of RFC 9562 is taken', async () => {
    const id = randomUUID()
    const machineId = '02bf0000-0000-0000-0000-000000000001'
    await edge.reports(1, bootReports(1, [bootWith({ id, mac, machineId })]))
    expect(await getBoot(id)).toMatchObject({ facts: { machineId } })
  })

  test('of a device that is not registered has none, and a foreign version is not shown', async () => {
    const other = await createTenant(api, `other-${randomUUID()}`)
    const id = randomUUID()
    const foreign = { vdiskId: other.vdiskId, versionId: other.versionId }
    await edge.reports(1, bootReports(1, [bootWith({ id, mac: '02:bf:00:00:00:99', ...foreign })]))
    expect(await getBoot(id)).toMatchObject({ deviceId: null, deviceName: null, vdisk: null })
  })

  test('of an unknown device registers it where the site lets those boot', async () => {
    const { organizationId, siteId, collectionId } = tenant
    const where = { organizationId_id: { organizationId, id: siteId } }
    await api.db.site.update({ where, data: { unknownDevices: 'boot' } })
    const id = randomUUID()
    const adopted = '52:54:00:00:00:77'
    const boot = bootWith({ id, mac: adopted })
    const generated = bootWith({ id: randomUUID(), mac: '52:54:00:00:00:78', generated: true })
    const again = bootWith({ id: randomUUID(), mac: adopted })
    expect(await edge.reports(1, bootReports(1, [boot, generated, again]))).toEqual(acked(3))
    await api.db.site.update({ where, data: { unknownDevices: 'ignore' } })
    const devices = await api.db.device.findMany({ where: { organizationId, mac: { startsWith: '52:54' } } })
    expect(devices).toMatchObject([{ mac: adopted, siteId, collectionId, name: '52-54-00-00-00-77' }])
    expect(await getBoot(id)).toMatchObject({ deviceId: devices[0]?.id, deviceName: '52-54-00-00-00-77' })
    const state = JSON.parse(String((await edge.state('0.0', 0)).body?.payload))
    expect(state.devices).toContainEqual(expect.objectContaining({ mac: adopted }))
  })

  test('that failed says why and what to do', async () => {
    const id = randomUUID()
    const outcome = {
      kind: 'failed' as const,
      phase: 'nbp' as const,
      cause: 'tftp_timeout' as const,
      text: '<b>',
    }
    await edge.reports(1, bootReports(1, [bootWith({ id, mac, outcome })]))
    expect(await getBoot(id)).toMatchObject({
      outcome: 'failed',
      failedPhase: 'nbp',
      failedCause: 'tftp_timeout',
      cause: { sentence: 'The device stopped acknowledging TFTP data.', deviceText: '<b>' },
    })
  })

  test('becomes its device’s last boot unless the device began a later one', async () => {
    const deviceId = tenant.deviceIds[1] ?? ''
    const later = bootWith({ id: randomUUID(), mac: tenant.macs[1] ?? '', startedUnixMs: 2_000_000 })
    const earlier = bootWith({ id: randomUUID(), mac: tenant.macs[1] ?? '', startedUnixMs: 1_000_000 })
    const { outcome: _none, ...goingOn } = later
    const lastBoot = async () => (await query<DeviceDetail>(api, cookie, 'device.get', { deviceId })).lastBoot
    await edge.reports(1, bootReports(1, [goingOn]))
    expect(await lastBoot()).toMatchObject({ id: later.id, outcome: null })
    await edge.reports(2, bootReports(2, [earlier]))
    expect(await lastBoot()).toMatchObject({ id: later.id, outcome: null })
    await edge.reports(3, bootReports(3, [{ ...later, revision: 2 }]))
    expect(await lastBoot()).toMatchObject({ id: later.id, outcome: 'ready', totalUs: 3_000_000 })
  })
})

test('a commit with reports notifies nobody; what changed is announced after it', async () => {
  const announced: string[][] = []
  const beside = await startTestApi({
    beside: api,
    change: ({ notifications, ...options }) => ({
      ...options,
      notifications: { ...notifications, announce: (payloads) => announced.push(payloads) },
    }),
  })
  const listener = new pg.Client({ connectionString: api.databaseUrl })
  await listener.connect()
  try {
    const heard: (string | undefined)[] = []
    const ended = new Promise<void>((resolve) => {
      listener.on('notification', ({ payload }) => (payload === 'end' ? resolve() : heard.push(payload)))
    })
    await listener.query('listen bootfarm')
    const sender = new EdgeClient(beside.url, edge.seed)
    sender.edgeId = edge.edgeId
    const [ready, failed] = [randomUUID(), randomUUID()]
    const outcome = { kind: 'failed', phase: 'nbp', cause: 'tftp_timeout', text: 'no answer' } as const
    const at = { bootId: ready, mac, startedUnixMs: api.clock.now.getTime(), atUs: 1 }
    const instantUnixMs = at.startedUnixMs
    const reports: Report[] = [
      ...bootReports(1, [bootWith({ id: ready, mac }), bootWith({ id: failed, mac, outcome })]),
      { seq: 3, type: 'waiting', ...at, edgeId: randomUUID() },
      { seq: 4, type: 'withdrawn', bootId: failed, toEdgeId: randomUUID() },
      { seq: 5, type: 'discovered', device: discoveredWith({ mac: '02:bf:00:00:0f:01' }) },
      { seq: 6, type: 'schedule_run', run: { scheduleId: randomUUID(), instantUnixMs, state: 'running', devices: [] } },
    ]
    expect(await sender.reports(1, reports)).toEqual(acked(6))
    // Notifications come in the order of their commits.
    await api.db.$executeRaw`select pg_notify('bootfarm', 'end')`
    await ended
    expect(heard).toEqual([])
    const { organizationId } = tenant
    expect(announced.map((payloads) => payloads.sort())).toEqual([
      [`boots:${organizationId}`, `discovered:${organizationId}`],
    ])
    expect(await sender.reports(1, reports)).toEqual(acked(6))
    expect(announced.slice(1)).toEqual([[]])
  } finally {
    await listener.end()
    await beside.close()
  }
})
