import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestApi, type TestApi } from '../../test/test-api.ts'
import { callProcedure, query } from '../../test/test-client.ts'
import { createPerson, createTenant, signIn, type TestTenant } from '../../test/test-tenant.ts'

let api: TestApi
let tenant: TestTenant
let otherSiteId: string
let otherDeviceId: string

interface Named {
  items: { id: string }[]
}

beforeAll(async () => {
  api = await startTestApi()
  tenant = await createTenant(api, 'own')
  const { organizationId, farmId, vdiskId } = tenant
  const place = { organizationId, farmId, timeZone: 'UTC' }
  otherSiteId = (await api.db.site.create({ data: { ...place, name: 'Other' }, select: { id: true } })).id
  const collection = await api.db.collection.create({
    data: { organizationId, siteId: otherSiteId, name: 'Other', vdiskId },
    select: { id: true },
  })
  const device = { organizationId, siteId: otherSiteId, collectionId: collection.id }
  otherDeviceId = (
    await api.db.device.create({
      data: { ...device, name: 'other', mac: '02:bf:00:00:01:01' },
      select: { id: true },
    })
  ).id
})
afterAll(() => api.close())

/** Signed in with one role, in one place. */
async function signInWith(grant: { role: 'operator' | 'viewer'; siteId?: string; collectionId?: string }) {
  const { organizationId } = tenant
  const person = await createPerson(api, organizationId, null)
  const user = await api.db.user.findUniqueOrThrow({ where: { email: person.email }, select: { id: true } })
  await api.db.membership.create({ data: { organizationId, userId: user.id } })
  await api.db.roleGrant.create({ data: { organizationId, userId: user.id, ...grant } })
  const answer = await signIn(api, person)
  return answer.headers
    .getSetCookie()
    .map((cookie) => cookie.split(';')[0])
    .join('; ')
}

const power = (cookie: string, deviceId: string) =>
  callProcedure(api, {
    path: 'device.orderPower',
    type: 'mutation',
    input: { deviceId, order: 'restart' },
    cookie,
  })

test('a role of one site reaches what lies within, and the rest is as if it were not there', async () => {
  const cookie = await signInWith({ role: 'operator', siteId: tenant.siteId })
  const devices = await query<Named>(api, cookie, 'device.list', {})
  expect(devices.items.map(({ id }) => id).sort()).toEqual([...tenant.deviceIds].sort())
  const sites = await query<Named>(api, cookie, 'site.list', {})
  expect(sites.items.map(({ id }) => id)).toEqual([tenant.siteId])
  const absent = await power(cookie, randomUUID())
  const beside = await power(cookie, otherDeviceId)
  expect([beside.status, beside.text]).toEqual([404, absent.text])
  for (const input of [{ siteId: otherSiteId }, { siteId: randomUUID() }]) {
    const answer = await callProcedure(api, { path: 'site.get', type: 'query', input, cookie })
    expect(answer.status).toBe(404)
  }
})

test('a role of one collection sees its site and no other devices than its own', async () => {
  const cookie = await signInWith({ role: 'viewer', collectionId: tenant.collectionId })
  const sites = await query<Named>(api, cookie, 'site.list', {})
  expect(sites.items.map(({ id }) => id)).toEqual([tenant.siteId])
  const devices = await query<Named>(api, cookie, 'device.list', {})
  expect(devices.items).toHaveLength(tenant.deviceIds.length)
  const answer = await power(cookie, tenant.deviceIds[0] ?? '')
  expect([answer.status, answer.code]).toEqual([403, 'forbidden'])
})

test('every change is in the audit log, with who, what and where', async () => {
  const cookie = await signInWith({ role: 'operator', siteId: tenant.siteId })
  const deviceId = tenant.deviceIds[1] ?? ''
  await api.db.edge.create({
    data: {
      organizationId: tenant.organizationId,
      siteId: tenant.siteId,
      name: 'e',
      publicKey: randomUUID(),
      arch: 'x86_64',
      agentVersion: '1',
      enrolledAt: api.clock.now,
    },
  })
  const input = { deviceId }
  const answer = await callProcedure(api, { path: 'device.bootAgain', type: 'mutation', input, cookie })
  expect(answer.status).toBe(200)
  const entries = await api.db.auditEntry.findMany({ where: { objectId: deviceId } })
  expect(entries).toMatchObject([
    {
      action: 'device.bootAgain',
      objectKind: 'device',
      actorKind: 'person',
      address: '127.0.0.1',
      objectName: 'pc-02',
      before: { powerOnId: null },
      after: { powerOnId: expect.any(String) },
    },
  ])
})

test('what fails leaves nothing in the audit log', async () => {
  const cookie = await signInWith({ role: 'viewer', siteId: tenant.siteId })
  const before = await api.db.auditEntry.count()
  await power(cookie, tenant.deviceIds[0] ?? '')
  expect(await api.db.auditEntry.count()).toBe(before)
})
