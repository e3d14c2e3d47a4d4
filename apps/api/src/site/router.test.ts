import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bootReports, bootWith, EdgeClient } from '../../test/edge-client.ts'
import { startTestApi, type TestApi } from '../../test/test-api.ts'
import { callProcedure, mutate, query } from '../../test/test-client.ts'
import { createTenant, makeJoinToken, signIn, signInAs, type TestTenant } from '../../test/test-tenant.ts'
import type { DeviceDetail, DeviceSummary } from '../device/schema.ts'

interface Page<T> {
  items: T[]
  nextCursor: string | null
}

let api: TestApi
let tenant: TestTenant
let cookie: string
let edge: EdgeClient

beforeAll(async () => {
  api = await startTestApi()
  tenant = await createTenant(api, 'own')
  cookie = await signInAs(api, tenant.organizationId, 'owner')
  edge = await EdgeClient.enrolled(api.url, await makeJoinToken(api, tenant))
  const [first = '', second = ''] = tenant.macs
  const silent = { kind: 'silent' as const, phase: 'loader' as const }
  await edge.reports(
    1,
    bootReports(1, [
      bootWith({ id: '0b3f6a52-6c0f-4b1d-8a57-3f1de5a0c701', mac: first }),
      bootWith({ id: '0b3f6a52-6c0f-4b1d-8a57-3f1de5a0c702', mac: second, outcome: silent }),
    ]),
  )
})
afterAll(() => api.close())

const namesOf = async (path: string, input: object = {}) =>
  (await query<Page<{ name: string }>>(api, cookie, path, input)).items.map(({ name }) => name)

describe('sign-in', () => {
  test('nobody makes an account by himself', async () => {
    const answer = await fetch(`${api.url}/api/auth/sign-up/email`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: 'http://localhost:3000' },
      body: JSON.stringify({ name: 'x', email: 'x@example.test', password: 'long enough a password' }),
    })
    expect(answer.status).toBe(400)
    expect(await api.db.user.count({ where: { email: 'x@example.test' } })).toBe(0)
  })

  test('a wrong password and an unknown person get the same answer', async () => {
    const person = await api.db.user.findFirstOrThrow({ select: { email: true } })
    const wrong = await signIn(api, { email: person.email, password: 'not the password' })
    const unknown = await signIn(api, { email: 'nobody@example.test', password: 'not the password' })
    expect([wrong.status, unknown.status]).toEqual([401, 401])
    expect(await wrong.text()).toBe(await unknown.text())
  })

  test('a page of another origin cannot sign in', async () => {
    const answer = await fetch(`${api.url}/api/auth/sign-in/email`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: 'http://evil.test', cookie },
      body: JSON.stringify({ email: 'a@example.test', password: 'x' }),
    })
    expect(answer.status).toBe(403)
  })

  test('the session says who, where and as what', async () => {
    expect(await query(api, cookie, 'session.me')).toMatchObject({
      organization: { id: tenant.organizationId, name: 'Organization own' },
      grants: [{ role: 'owner', farmId: null, siteId: null, collectionId: null }],
    })
  })

  test('ends with sign-out', async () => {
    const own = await signInAs(api, tenant.organizationId, 'viewer')
    await fetch(`${api.url}/api/auth/sign-out`, {
      method: 'POST',
      headers: { cookie: own, origin: 'http://localhost:3000', 'content-type': 'application/json' },
      body: '{}',
    })
    expect(await callProcedure(api, { path: 'session.me', type: 'query', cookie: own })).toMatchObject({
      status: 401,
    })
  })
})

describe('lists', () => {
  test('show what there is', async () => {
    expect(await namesOf('farm.list')).toEqual(['Farm of own'])
    expect(await namesOf('site.list')).toEqual(['Site of own'])
    expect(await namesOf('collection.list', { siteId: tenant.siteId })).toEqual(['Lab'])
    expect(await namesOf('vdisk.list', { farmId: tenant.farmId })).toEqual(['Linux'])
    expect(await namesOf('edge.list', { siteId: tenant.siteId })).toEqual(['edge-1'])
  })

  test('of devices go on after the cursor', async () => {
    const first = await query<Page<DeviceSummary>>(api, cookie, 'device.list', { limit: 4 })
    const second = await query<Page<DeviceSummary>>(api, cookie, 'device.list', {
      limit: 4,
      cursor: first.nextCursor,
    })
    const names = [...first.items, ...second.items].map(({ name }) => name)
    expect(names).toEqual(['pc-01', 'pc-02', 'pc-03', 'pc-04', 'pc-05', 'pc-06'])
    expect(second.nextCursor).toBeNull()
  })

  test.each([
    [{ search: 'PC-03' }, ['pc-03']],
    [{ search: '00-00-06' }, ['pc-06']],
    [{ search: '%' }, []],
    [{ search: '_' }, []],
    [{ lastOutcome: 'ready' }, ['pc-01']],
    [{ lastOutcome: 'silent' }, ['pc-02']],
    [{ lastOutcome: 'booting' }, []],
    [{ lastOutcome: 'never', search: 'pc' }, ['pc-03', 'pc-04', 'pc-05', 'pc-06']],
  ])('of devices filter by %j', async (input, names) => {
    expect(await namesOf('device.list', input)).toEqual(names)
  })
})

describe('one thing', () => {
  test('a site has its edges and collections', async () => {
    expect(await query(api, cookie, 'site.get', { siteId: tenant.siteId })).toMatchObject({
      name: 'Site of own',
      edgeCount: 1,
      deviceCount: 6,
      edges: [{ id: edge.edgeId }],
      collections: [{ id: tenant.collectionId, vdiskName: 'Linux', deviceCount: 6 }],
    })
  })

  test('a vDisk has its versions and who boots it', async () => {
    expect(await query(api, cookie, 'vdisk.get', { vdiskId: tenant.vdiskId })).toMatchObject({
      farmName: 'Farm of own',
      versions: [{ id: tenant.versionId, number: 1, sizeBytes: 419_430_400 }],
      collections: [{ name: 'Lab', deviceCount: 6 }],
    })
  })

  test('a join token that the dashboard made enrols an edge', async () => {
    const { token } = await mutate<{ token: string }>(api, cookie, 'edge.createJoinToken', {
      siteId: tenant.siteId,
    })
    expect((await new EdgeClient(api.url).enrol(token)).status).toBe(201)
    expect(JSON.stringify(await api.db.joinToken.findMany())).not.toContain(token)
  })
})

describe('device.bootAgain', () => {
  const deviceId = () => tenant.deviceIds[2] ?? ''
  const again = (id: string) =>
    callProcedure(api, { path: 'device.bootAgain', type: 'mutation', input: { deviceId: id }, cookie })

  test('is shown at the device until its minute is over', async () => {
    const powerOn = async () => (await query<DeviceDetail>(api, cookie, 'device.get', { deviceId: deviceId() })).powerOn
    const { powerOnId } = await mutate<{ powerOnId: string }>(api, cookie, 'device.bootAgain', {
      deviceId: deviceId(),
    })
    expect(await powerOn()).toMatchObject({ id: powerOnId })
    api.clock.advance(60_000)
    expect(await powerOn()).toBeNull()
  })

  test('is refused for a disabled device', async () => {
    const id = tenant.deviceIds[3] ?? ''
    await api.db.device.updateMany({ where: { id }, data: { enabled: false } })
    expect(await again(id)).toMatchObject({ status: 409, code: 'conflict' })
  })

  test('is refused where no edge could do it', async () => {
    const lonely = await createTenant(api, 'lonely')
    const owner = await signInAs(api, lonely.organizationId, 'owner')
    const input = { deviceId: lonely.deviceIds[0] }
    const answer = await callProcedure(api, {
      path: 'device.bootAgain',
      type: 'mutation',
      input,
      cookie: owner,
    })
    expect(answer).toMatchObject({ status: 409, code: 'conflict' })
  })

  test('is refused when it was asked for too often', async () => {
    const id = tenant.deviceIds[4] ?? ''
    const answers = []
    for (let count = 0; count < 11; count++) answers.push((await again(id)).status)
    expect(answers.filter((status) => status === 409)).toHaveLength(1)
  })
})
