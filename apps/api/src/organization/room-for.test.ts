import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { bootReports, bootWith, EdgeClient } from '../../test/edge-client.ts'
import { startTestApi, type TestApi } from '../../test/test-api.ts'
import { callProcedure, mutate, query } from '../../test/test-client.ts'
import {
  createPerson,
  createTenant,
  makeJoinToken,
  sessionCookie,
  signInAs,
  type TestTenant,
} from '../../test/test-tenant.ts'
import type { QuotaName } from '../rules/quotas.ts'

// Every addition beyond a quota is refused with the quota's name, and exactly so when many add at once.

let api: TestApi
beforeAll(async () => {
  api = await startTestApi()
})
afterAll(() => api.close())

interface Setup {
  tenant: TestTenant
  cookie: string
}

async function setUp(): Promise<Setup> {
  const tenant = await createTenant(api, randomUUID())
  return { tenant, cookie: await signInAs(api, tenant.organizationId, 'owner') }
}

/** Sets the quota to the current number, plus `more`. */
async function allow({ tenant, cookie }: Setup, name: QuotaName, more: number): Promise<void> {
  const { organizationId } = tenant
  const { quotas } = await query<{ quotas: { name: string; used: number }[] }>(api, cookie, 'organization.usage', {})
  const countMax = (quotas.find((quota) => quota.name === name)?.used ?? 0) + more
  await api.db.organizationQuota.upsert({
    where: { organizationId_name: { organizationId, name } },
    create: { organizationId, name, countMax },
    update: { countMax },
  })
}

const call = ({ cookie }: Setup, path: string, input: unknown) =>
  callProcedure(api, { path, type: 'mutation', cookie, input })

const deviceInput = ({ tenant }: Setup, number: number) => ({
  collectionId: tenant.collectionId,
  name: `new-${number}`,
  mac: `02:bf:01:00:00:${number.toString(16).padStart(2, '0')}`,
})

test('one more than allowed is refused with the quota, its use, its limit, and the person to ask', async () => {
  const set = await setUp()
  const { siteId, farmId, organizationId } = set.tenant
  const when = { kind: 'cron', expression: '30 6 * * 1-5' }
  const targets = [{ kind: 'collection', collectionId: set.tenant.collectionId }]
  const schedule = { farmId, siteId, name: 'Morning', when, targets, timeZone: 'Europe/Berlin' }
  const cases: [QuotaName, string, object][] = [
    ['sites', 'site.create', { farmId, name: 'One more', timeZone: 'UTC' }],
    ['devices', 'device.create', deviceInput(set, 1)],
    ['vdisks', 'vdisk.create', { farmId, name: 'One more' }],
    ['api_keys', 'apiKey.create', { name: 'One more', role: 'viewer' }],
    ['webhooks', 'webhook.create', { name: 'One more', url: 'https://hooks.example/in', events: ['boot.failed'] }],
    ['schedules', 'schedule.create', { ...schedule, ratePerMinute: 10, power: 'wake_on_lan' }],
  ]
  for (const [quota, path, input] of cases) {
    await allow(set, quota, 0)
    const told = await call(set, path, input)
    expect([path, told.status, told.code, told.text]).toEqual([path, 403, 'quota_exceeded', told.text])
    expect(told.text).toMatch(/can have \d+ .* and has \d+, so 1 more/)
    expect(told.text).toContain('contact the operator of this installation')
    await allow(set, quota, 1)
    expect([path, (await call(set, path, input)).status]).toEqual([path, 200])
  }
  await api.db.apiKey.updateMany({ where: { organizationId }, data: { revokedAt: api.clock.now } })
  await allow(set, 'api_keys', 1)
  expect((await call(set, 'apiKey.create', { name: 'Another', role: 'viewer' })).status).toBe(200)
})

test('members and edges are refused where they come in: by an invitation, and by a join token', async () => {
  const set = await setUp()
  const { organizationId } = set.tenant
  const { email } = await createPerson(api, organizationId, null)
  await mutate(api, set.cookie, 'invitation.create', { email, role: 'viewer', scope: {} })
  const token = /\/invitation\/(\S+)/.exec(api.mails.at(-1)?.text ?? '')?.[1] ?? ''
  const user = await api.db.user.findUniqueOrThrow({ where: { email } })
  const invited = { ...set, cookie: await sessionCookie(api, user.id) }
  await allow(set, 'members', 0)
  expect((await call(invited, 'invitation.accept', { token })).code).toBe('quota_exceeded')
  await allow(set, 'members', 1)
  expect((await call(invited, 'invitation.accept', { token })).status).toBe(200)
  await allow(set, 'edges', 0)
  const joinToken = await makeJoinToken(api, set.tenant)
  const answer = await new EdgeClient(api.url).enrol(joinToken)
  expect([answer.status, answer.body]).toMatchObject([403, { code: 'quota_exceeded', quota: 'edges' }])
  await allow(set, 'edges', 1)
  expect((await new EdgeClient(api.url).enrol(joinToken)).status).toBe(201)
})

test('a table of devices is taken whole or not at all, and what was deleted comes back only where there is room', async () => {
  const set = await setUp()
  const { deviceIds, siteId } = set.tenant
  const rows = [1, 2, 3].map((number) => `02:bf:02:00:00:0${number},csv-${number},Lab`)
  const csv = { siteId, preview: false, csv: `mac,name,collection\n${rows.join('\n')}\n` }
  await allow(set, 'devices', 2)
  const refused = await call(set, 'device.importCsv', csv)
  expect([refused.code, refused.text]).toEqual(['quota_exceeded', refused.text])
  expect(await api.db.device.count({ where: { organizationId: set.tenant.organizationId } })).toBe(6)
  await allow(set, 'devices', 3)
  expect((await call(set, 'device.importCsv', csv)).status).toBe(200)
  const { deletionId } = await mutate<{ deletionId: string }>(api, set.cookie, 'device.remove', {
    deviceId: deviceIds[0],
  })
  await allow(set, 'devices', 0)
  expect((await call(set, 'device.restore', { deletionId })).code).toBe('quota_exceeded')
  await allow(set, 'devices', 1)
  expect((await call(set, 'device.restore', { deletionId })).status).toBe(200)
})

test('of many that add at once, exactly as many as there is room for succeed', async () => {
  const set = await setUp()
  await allow(set, 'devices', 5)
  const numbers = Array.from({ length: 20 }, (_, index) => index + 1)
  const told = await Promise.all(numbers.map((number) => call(set, 'device.create', deviceInput(set, number))))
  const codes = told.map(({ status, code }) => (status === 200 ? 'ok' : code))
  expect(codes.filter((code) => code === 'ok')).toHaveLength(5)
  expect(codes.filter((code) => code === 'quota_exceeded')).toHaveLength(15)
  expect(await api.db.device.count({ where: { organizationId: set.tenant.organizationId } })).toBe(11)
})

test('reports are taken in full where devices would register themselves and there is no room', async () => {
  const set = await setUp()
  const { organizationId, siteId } = set.tenant
  await api.db.site.updateMany({ where: { organizationId, id: siteId }, data: { unknownDevices: 'boot' } })
  const edge = await EdgeClient.enrolled(api.url, await makeJoinToken(api, set.tenant))
  await allow(set, 'devices', 1)
  const boots = [1, 2, 3].map((number) => bootWith({ id: randomUUID(), mac: `02:bf:03:00:00:0${number}` }))
  const answer = await edge.reports(1, bootReports(1, boots))
  expect(answer.status).toBe(200)
  expect(await api.db.boot.count({ where: { organizationId } })).toBe(3)
  expect(await api.db.device.count({ where: { organizationId } })).toBe(7)
})

test('every table that a quota counts is watched, and no other organization is held up', async () => {
  const rows = await api.db.$queryRaw<{ relname: string }[]>`
    select relname from pg_trigger join pg_class on pg_class.oid = tgrelid where tgname = 'within_quota' order by relname`
  expect(rows.map(({ relname }) => relname)).toEqual(
    ['api_key', 'device', 'edge', 'membership', 'schedule', 'site', 'vdisk', 'webhook_endpoint'].sort(),
  )
  const [full, free] = [await setUp(), await setUp()]
  await allow(full, 'devices', 0)
  expect((await call(free, 'device.create', deviceInput(free, 1))).status).toBe(200)
})
