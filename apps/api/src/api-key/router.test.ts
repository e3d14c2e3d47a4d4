import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { callRest } from '../../test/rest-client.ts'
import { startTestApi, type TestApi } from '../../test/test-api.ts'
import { createPerson, createTenant, signIn, type TestTenant } from '../../test/test-tenant.ts'
import { meetOf, permissionsOf, type Role, roles } from '../rules/permissions.ts'

let api: TestApi
let tenant: TestTenant
let cookie: string
let userId: string

beforeAll(async () => {
  api = await startTestApi()
})
afterAll(() => api.close())

/** Each test has an owner of a separate organization. */
beforeEach(async () => {
  tenant = await createTenant(api, randomUUID())
  const person = await createPerson(api, tenant.organizationId, 'owner')
  userId = (await api.db.user.findUniqueOrThrow({ where: { email: person.email }, select: { id: true } })).id
  const answer = await signIn(api, person)
  cookie = answer.headers
    .getSetCookie()
    .map((one) => one.split(';')[0])
    .join('; ')
})

interface Created {
  id: string
  secret: string
}

async function createKey(key: object = {}): Promise<Created> {
  const answer = await callRest(api, '/api-keys', {
    method: 'POST',
    body: { name: 'A script', role: 'operator', ...key },
    headers: { cookie },
  })
  expect([answer.status, answer.status === 201 ? '' : answer.text]).toEqual([201, ''])
  return answer.body as Created
}

const call = (secret: string, path: string, more: object = {}) =>
  callRest(api, path, { ...more, headers: { authorization: `Bearer ${secret}` } })

async function memberOf(role: Role): Promise<{ userId: string }> {
  const { email } = await createPerson(api, tenant.organizationId, role)
  return { userId: (await api.db.user.findUniqueOrThrow({ where: { email }, select: { id: true } })).id }
}

const setRole = (role: Role) =>
  api.db.roleGrant.updateMany({ where: { organizationId: tenant.organizationId, userId }, data: { role } })

test('a key does what its role allows, and its use is in the audit log under its own name', async () => {
  const { secret, id } = await createKey()
  expect((await call(secret, '/devices')).status).toBe(200)
  const [deviceId] = tenant.deviceIds
  const path = `/devices/${deviceId}/boot-program-set`
  expect((await call(secret, path, { method: 'PUT', body: { bootProgramSet: null } })).status).toBe(200)
  const refused = await call(secret, '/api-keys')
  expect([refused.status, refused.body]).toMatchObject([403, { code: 'forbidden' }])
  const entries = await api.db.auditEntry.findMany({ where: { actorId: id } })
  expect(entries).toMatchObject([
    { action: 'device.setBootProgramSet', actorKind: 'api_key', actorName: 'API key A script' },
  ])
})

test('nothing but its hash and its begin is kept of a secret', async () => {
  const { secret, id } = await createKey()
  expect(secret).toMatch(/^bfk_[\w-]{43}$/)
  const row = await api.db.apiKey.findFirstOrThrow({ where: { id } })
  expect(JSON.stringify(row)).not.toContain(secret)
  const listed = await callRest(api, '/api-keys', { headers: { cookie } })
  expect(listed.text).toContain(secret.slice(0, 10))
  expect(listed.text).not.toContain(secret.slice(0, 14))
})

test('a key of one site and one permission reaches no further', async () => {
  const { secret } = await createKey({ siteId: tenant.siteId, permissions: ['device.read'] })
  const other = await api.db.site.create({
    data: { organizationId: tenant.organizationId, farmId: tenant.farmId, name: 'Other', timeZone: 'UTC' },
  })
  expect((await call(secret, '/devices')).status).toBe(200)
  expect((await call(secret, '/boots')).status).toBe(403)
  expect((await call(secret, `/sites/${other.id}`)).status).toBe(403)
  const [deviceId] = tenant.deviceIds
  const path = `/devices/${deviceId}/boot-program-set`
  expect((await call(secret, path, { method: 'PUT', body: { bootProgramSet: null } })).status).toBe(403)
})

test('a key of a place in the trash is refused until the place is restored', async () => {
  for (const [kind, place] of [
    ['collection', { collectionId: tenant.collectionId }],
    ['site', { siteId: tenant.siteId }],
  ] as const) {
    const { secret } = await createKey(place)
    expect((await call(secret, '/devices')).status).toBe(200)
    const [id] = Object.values(place)
    const removed = await callRest(api, `/${kind}s/${id}`, { method: 'DELETE', headers: { cookie } })
    expect(removed.status).toBe(200)
    for (const path of ['/devices', '/vdisks', '/sites', '/search?search=pc'])
      expect([path, (await call(secret, path)).status]).toEqual([path, 401])
    const { deletionId } = removed.body as { deletionId: string }
    const restored = await callRest(api, `/trash/${deletionId}/${kind}`, { method: 'POST', headers: { cookie } })
    expect(restored.status).toBe(200)
    expect((await call(secret, '/devices')).status).toBe(200)
  }
})

test('a key shrinks with its creator and ends when that one leaves', async () => {
  const { secret } = await createKey({ role: 'admin' })
  expect((await call(secret, '/api-keys')).status).toBe(200)
  await setRole('operator')
  expect((await call(secret, '/api-keys')).status).toBe(403)
  expect((await call(secret, '/devices')).status).toBe(200)
  await api.db.membership.deleteMany({ where: { userId } })
  expect((await call(secret, '/devices')).status).toBe(401)
})

test('nobody makes a key that could do more than himself, and no key makes keys', async () => {
  await setRole('admin')
  const body = { name: 'More', role: 'owner' }
  const refused = await callRest(api, '/api-keys', { method: 'POST', body, headers: { cookie } })
  expect([refused.status, refused.body]).toMatchObject([403, { code: 'forbidden' }])
  const { secret } = await createKey({ role: 'admin' })
  const bred = await call(secret, '/api-keys', { method: 'POST', body: { name: 'Child', role: 'viewer' } })
  expect([bred.status, bred.body]).toMatchObject([403, { code: 'forbidden' }])
})

test('a revoked key and an expired one are refused at the next request', async () => {
  const { secret, id } = await createKey()
  expect((await call(secret, '/devices')).status).toBe(200)
  await callRest(api, `/api-keys/${id}/revoke`, { method: 'POST', headers: { cookie } })
  expect((await call(secret, '/devices')).status).toBe(401)
  const expiresAt = new Date(api.clock.now.getTime() + 60_000).toISOString()
  const short = await createKey({ expiresAt })
  expect((await call(short.secret, '/devices')).status).toBe(200)
  api.clock.advance(60_000)
  expect((await call(short.secret, '/devices')).status).toBe(401)
  expect((await call('bfk_no_such_key', '/devices')).status).toBe(401)
})

test('requests are counted for each key, and a refused one gets its retry time', async () => {
  const { secret } = await createKey({ requestsPerMinute: 2 })
  const first = await call(secret, '/devices')
  expect(Object.fromEntries(first.headers)).toMatchObject({
    'ratelimit-limit': '2',
    'ratelimit-remaining': '1',
    'ratelimit-reset': '60',
  })
  api.clock.advance(20_000)
  expect((await call(secret, '/devices')).status).toBe(200)
  const third = await call(secret, '/devices')
  expect([third.status, third.body]).toMatchObject([429, { code: 'rate_limited' }])
  expect(Object.fromEntries(third.headers)).toMatchObject({
    'retry-after': '40',
    'ratelimit-remaining': '0',
  })
  api.clock.advance(40_000)
  expect((await call(secret, '/devices')).status).toBe(200)
})

test('requests that come at once are all counted, whichever process takes them', async () => {
  const { secret } = await createKey({ requestsPerMinute: 5 })
  const answers = await Promise.all(Array.from({ length: 12 }, () => call(secret, '/session')))
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(5)
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(7)
})

test('when a key was used last is kept to the minute', async () => {
  const { secret, id } = await createKey()
  const lastUsedAt = async () =>
    (await api.db.apiKey.findFirstOrThrow({ where: { id }, select: { lastUsedAt: true } })).lastUsedAt
  await call(secret, '/session')
  const first = await lastUsedAt()
  api.clock.advance(59_000)
  await call(secret, '/session')
  expect(await lastUsedAt()).toEqual(first)
  api.clock.advance(1_000)
  await call(secret, '/session')
  expect(await lastUsedAt()).toEqual(api.clock.now)
})

test('what two roles have in common is a role', () => {
  for (const one of roles)
    for (const other of roles) {
      const both = permissionsOf(one).filter((permission) => permissionsOf(other).includes(permission))
      expect(permissionsOf(meetOf(one, other))).toEqual(both)
    }
})

test('a request of many procedures is refused beyond twenty, and to a key altogether: each request counts as one', async () => {
  const { secret } = await createKey()
  const batch = (count: number, headers: Record<string, string>) => {
    const calls = Array.from({ length: count }, () => ({}))
    const paths = calls.map(() => 'farm.list').join(',')
    const input = encodeURIComponent(JSON.stringify({ ...calls }))
    return fetch(`${api.url}/api/trpc/${paths}?batch=1&input=${input}`, { headers })
  }
  expect((await batch(20, { cookie })).status).toBe(200)
  expect((await batch(21, { cookie })).status).toBe(400)
  const byKey = await batch(2, { authorization: `Bearer ${secret}` })
  expect([byKey.status, await byKey.text()]).toEqual([400, expect.stringContaining('in a request of its own')])
  expect((await batch(1, { authorization: `Bearer ${secret}` })).status).toBe(200)
})

test('a key neither makes an owner or an admin, nor removes one', async () => {
  const { secret } = await createKey({ role: 'owner' })
  const invite = (role: string) =>
    call(secret, '/invitations', { method: 'POST', body: { email: `${randomUUID()}@example.test`, role, scope: {} } })
  for (const role of ['owner', 'admin']) expect((await invite(role)).body).toMatchObject({ code: 'forbidden' })
  expect((await invite('operator')).status).toBe(201)
  const { userId: adminId } = await memberOf('admin')
  const removed = await call(secret, `/members/${adminId}`, { method: 'DELETE' })
  expect([removed.status, removed.text]).toEqual([403, expect.stringContaining('Sign in as a person')])
  const { userId: viewerId } = await memberOf('viewer')
  expect((await call(secret, `/members/${viewerId}`, { method: 'DELETE' })).status).toBe(204)
})

test('a key ends after 90 days unless its creator says otherwise', async () => {
  const expiryOf = async (key: object) => (await createKey(key)) as unknown as { expiresAt: string | null }
  const dayMs = 86_400_000
  const later = (days: number) => new Date(api.clock.now.getTime() + days * dayMs).toISOString()
  expect((await expiryOf({})).expiresAt).toBe(later(90))
  expect((await expiryOf({ expiresAt: null })).expiresAt).toBeNull()
  expect((await expiryOf({ expiresAt: later(5) })).expiresAt).toBe(later(5))
})

test('who is signed in for long proves it again before making keys, signing keys and owners', async () => {
  await api.db.session.updateMany({
    where: { userId },
    data: { createdAt: new Date(api.clock.now.getTime() - 11 * 60_000) },
  })
  const member = await memberOf('viewer')
  const post = (path: string, body?: object) => callRest(api, path, { method: 'POST', body, headers: { cookie } })
  const { organizationId } = tenant
  const key = await api.db.apiKey.create({
    data: {
      organizationId,
      name: 'A key',
      prefix: 'bfk_',
      secretHash: randomUUID(),
      role: 'viewer',
      createdAt: new Date(0),
    },
  })
  const asked = [
    await post('/api-keys', { name: 'A script', role: 'viewer' }),
    await post(`/api-keys/${key.id}/take-over`),
    await post('/signing-key/rotate'),
    await post(`/members/${member.userId}/grants`, { role: 'owner', scope: {} }),
    await post('/invitations', { email: 'new@example.test', role: 'owner', scope: {} }),
  ]
  expect(asked.map(({ body }) => (body as { code: string }).code)).toEqual(asked.map(() => 'confirmation_needed'))
  expect((await post(`/members/${member.userId}/grants`, { role: 'auditor', scope: {} })).status).toBe(201)
  await api.db.session.updateMany({ where: { userId }, data: { confirmedAt: api.clock.now } })
  expect((await post(`/members/${member.userId}/grants`, { role: 'owner', scope: {} })).status).toBe(201)
  expect((await post('/signing-key/rotate')).status).toBe(200)
})

test('a key that is taken over outlasts its creator, and does no more than its new owner may', async () => {
  const { secret, id } = await createKey({ role: 'admin' })
  const other = await createPerson(api, tenant.organizationId, 'admin')
  const answer = await signIn(api, other)
  const cookieOfOther = answer.headers
    .getSetCookie()
    .map((one) => one.split(';')[0])
    .join('; ')
  const takeOver = (headers: Record<string, string>, keyId = id) =>
    callRest(api, `/api-keys/${keyId}/take-over`, { method: 'POST', headers })
  const ofOwner = await createKey({ role: 'owner' })
  expect((await takeOver({ cookie: cookieOfOther }, ofOwner.id)).status).toBe(403)
  expect((await takeOver({ authorization: `Bearer ${secret}` })).status).toBe(403)
  expect(await takeOver({ cookie: cookieOfOther })).toMatchObject({ status: 200, body: { state: 'active' } })
  await api.db.membership.deleteMany({ where: { organizationId: tenant.organizationId, userId } })
  expect((await call(secret, '/devices')).status).toBe(200)
  expect((await call(ofOwner.secret, '/devices')).status).toBe(401)
})
