import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { person } from '../../test/matrix/callers.ts'
import { callRest } from '../../test/rest-client.ts'
import { startTestApi, type TestApi } from '../../test/test-api.ts'
import { callProcedure, mutate, query } from '../../test/test-client.ts'
import { createTenant, signInAs, type TestTenant } from '../../test/test-tenant.ts'
import type { ServiceAccountView } from './service-account-schema.ts'

let api: TestApi
let tenant: TestTenant
let owner: string
let admin: string

beforeAll(async () => {
  api = await startTestApi()
  tenant = await createTenant(api, 'own')
  owner = await signInAs(api, tenant.organizationId, 'owner')
  admin = await signInAs(api, tenant.organizationId, 'admin')
})
afterAll(() => api.close())

interface Key {
  id: string
  secret: string
  expiresAt: string | null
  createdByUserId: string
}

const make = (role: string, scope: object = {}, cookie = owner) =>
  mutate<ServiceAccountView>(api, cookie, 'serviceAccount.create', { name: `build ${randomUUID()}`, role, scope })
const tryMutate = (path: string, input: object, cookie = owner) =>
  callProcedure(api, { path, type: 'mutation', input, cookie })
const keyFor = (serviceAccountId: string, more: object = {}, cookie = owner) =>
  mutate<Key>(api, cookie, 'apiKey.create', { name: 'CI', role: 'operator', serviceAccountId, ...more })
const call = (secret: string, path: string, more: { method?: string; body?: object } = {}) =>
  callRest(api, path, { ...more, headers: { authorization: `Bearer ${secret}` } })

test('its key does what its roles allow, and the audit log names the account, whichever key it used', async () => {
  const { id, name } = await make('operator')
  const { secret } = await keyFor(id, { role: 'admin' })
  expect((await call(secret, '/session')).body).toMatchObject({
    user: { id, name: `service account ${name}` },
    grants: [{ role: 'operator' }],
  })
  const path = `/devices/${tenant.deviceIds[0]}/boot-program-set`
  expect((await call(secret, path, { method: 'PUT', body: { bootProgramSet: null } })).status).toBe(200)
  expect((await call(secret, '/api-keys')).status).toBe(403)
  const { items } = await query<{ items: object[] }>(api, owner, 'audit.list', { actorId: id })
  expect(items).toMatchObject([
    { action: 'device.setBootProgramSet', actorKind: 'service_account', actorName: `service account ${name}` },
  ])
  const made = await query<{ items: object[] }>(api, owner, 'audit.list', { objectId: id })
  expect(made.items).toMatchObject([{ action: 'serviceAccount.create', actorKind: 'person', objectName: name }])
})

test('it stays when the person who made it and its key leaves', async () => {
  const { id } = await make('operator', {}, admin)
  const { secret } = await keyFor(id, {}, admin)
  const me = await query<{ user: { id: string } }>(api, admin, 'session.me')
  const person = { organizationId: tenant.organizationId, userId: me.user.id }
  await api.db.membership.delete({ where: { organizationId_userId: person } })
  expect((await call(secret, '/devices')).status).toBe(200)
  admin = await signInAs(api, tenant.organizationId, 'admin')
})

test('it has its roles in their scope, and gets and loses roles like a member', async () => {
  const { id, revision } = await make('viewer', { siteId: tenant.siteId })
  const { secret } = await keyFor(id)
  expect((await call(secret, `/sites/${tenant.siteId}`)).status).toBe(200)
  expect((await call(secret, '/audit-entries')).status).toBe(403)
  const order = () =>
    call(secret, `/devices/${tenant.deviceIds[0]}/boot-program-set`, { method: 'PUT', body: { bootProgramSet: null } })
  expect((await order()).status).toBe(403)
  const grant = { userId: id, role: 'operator', scope: { siteId: tenant.siteId }, revision }
  const { grants } = await mutate<{ grants: { id: string; role: string }[] }>(api, owner, 'member.grant', grant)
  expect((await order()).status).toBe(200)
  const grantId = grants.find(({ role }) => role === 'operator')?.id
  await mutate(api, owner, 'member.take', { userId: id, grantId })
  expect((await order()).status).toBe(403)
  const elsewhere = await tryMutate('apiKey.create', { name: 'x', role: 'viewer', serviceAccountId: id, farmId: null })
  expect(elsewhere.status).toBe(200)
})

test('a key where it has no role is refused, and so is one of nobody, or of a person', async () => {
  const other = await api.db.site.create({
    data: { organizationId: tenant.organizationId, farmId: tenant.farmId, name: randomUUID(), timeZone: 'UTC' },
  })
  const { id } = await make('viewer', { siteId: tenant.siteId })
  const key = { name: 'x', role: 'viewer' }
  const refused = await tryMutate('apiKey.create', { ...key, serviceAccountId: id, siteId: other.id })
  expect([refused.code, refused.text]).toEqual(['invalid', expect.stringContaining('has no role in this scope')])
  const me = await query<{ user: { id: string } }>(api, owner, 'session.me')
  for (const serviceAccountId of [randomUUID(), me.user.id])
    expect((await tryMutate('apiKey.create', { ...key, serviceAccountId })).code).toBe('not_found')
})

test('nobody makes one with a role that is not his to give, and nobody an owner', async () => {
  const made = (role: string, cookie: string) =>
    tryMutate('serviceAccount.create', { name: 'x', role, scope: {} }, cookie)
  expect((await made('owner', admin)).code).toBe('forbidden')
  expect((await made('owner', owner)).code).toBe('invalid')
  expect((await made('admin', admin)).status).toBe(200)
  const { id } = await make('viewer')
  expect((await tryMutate('member.grant', { userId: id, role: 'owner', scope: {} })).code).toBe('invalid')
  const boss = await make('admin')
  const { secret } = await keyFor(boss.id, { role: 'admin' })
  const bred = await call(secret, '/service-accounts', {
    method: 'POST',
    body: { name: 'y', role: 'admin', scope: {} },
  })
  expect([bred.status, bred.text]).toEqual([403, expect.stringContaining('Sign in as a person')])
  const child = await call(secret, '/service-accounts', {
    method: 'POST',
    body: { name: 'y', role: 'viewer', scope: {} },
  })
  expect(child.status).toBe(201)
})

test('while it is disabled its keys are refused, and they work again afterwards', async () => {
  const { id, revision } = await make('operator')
  const key = await keyFor(id)
  const disabled = await mutate<ServiceAccountView>(api, owner, 'serviceAccount.update', {
    serviceAccountId: id,
    revision,
    disabled: true,
  })
  expect(disabled.disabledAt).toBe(api.clock.now.toISOString())
  expect((await call(key.secret, '/devices')).status).toBe(401)
  expect(await query(api, owner, 'apiKey.get', { apiKeyId: key.id })).toMatchObject({ state: 'disabled' })
  expect((await tryMutate('apiKey.create', { name: 'x', role: 'viewer', serviceAccountId: id })).code).toBe('conflict')
  const stale = await tryMutate('serviceAccount.update', { serviceAccountId: id, revision, disabled: false })
  expect(stale.code).toBe('conflict')
  const renewed = { serviceAccountId: id, revision: disabled.revision, disabled: false, name: 'Nightly build' }
  expect(await mutate(api, owner, 'serviceAccount.update', renewed)).toMatchObject({
    name: 'Nightly build',
    disabledAt: null,
  })
  expect((await call(key.secret, '/devices')).status).toBe(200)
})

test('its keys end with it, and nothing of it is left but the audit log', async () => {
  const { id, revision } = await make('operator')
  const { id: keyId, secret } = await keyFor(id)
  const { status } = await callRest(api, `/service-accounts/${id}?revision=${revision}`, {
    method: 'DELETE',
    headers: { cookie: owner },
  })
  expect(status).toBe(204)
  expect((await call(secret, '/devices')).status).toBe(401)
  expect(await query(api, owner, 'apiKey.get', { apiKeyId: keyId })).toMatchObject({ state: 'revoked' })
  expect(await api.db.user.count({ where: { id } })).toBe(0)
  const { items } = await query<{ items: { action: string }[] }>(api, owner, 'audit.list', { objectId: id })
  expect(items[0]).toMatchObject({ action: 'serviceAccount.remove', objectKind: 'service_account' })
})

test('a rotated key leaves the former one its overlap, and belongs to the same account', async () => {
  const { id } = await make('operator')
  const first = await keyFor(id)
  const second = await mutate<Key>(api, owner, 'apiKey.rotate', { apiKeyId: first.id, overlapHours: 2 })
  expect(second).toMatchObject({ createdByUserId: id, serviceAccountId: id, expiresAt: first.expiresAt })
  for (const { secret } of [first, second]) expect((await call(secret, '/devices')).status).toBe(200)
  const shown = await query<ServiceAccountView>(api, owner, 'serviceAccount.get', { serviceAccountId: id })
  expect(shown.keys).toEqual({ count: 2, lastUsedAt: api.clock.now.toISOString() })
  api.clock.advance(2 * 3_600_000)
  expect((await call(first.secret, '/devices')).status).toBe(401)
  expect((await call(second.secret, '/devices')).status).toBe(200)
})

test('nobody rotates the key of another person, and nobody takes over the key of a service account', async () => {
  owner = await signInAs(api, tenant.organizationId, 'owner')
  admin = await signInAs(api, tenant.organizationId, 'admin')
  const own = await mutate<Key>(api, admin, 'apiKey.create', { name: 'Own', role: 'viewer' })
  expect((await tryMutate('apiKey.rotate', { apiKeyId: own.id })).code).toBe('forbidden')
  expect((await tryMutate('apiKey.rotate', { apiKeyId: own.id, overlapHours: 0 }, admin)).status).toBe(200)
  expect((await call(own.secret, '/devices')).status).toBe(401)
  const { id } = await make('operator')
  const key = await keyFor(id)
  expect((await tryMutate('apiKey.takeOver', { apiKeyId: key.id })).code).toBe('conflict')
})

test('it cannot sign in: the database makes it no session, no password and no link to a provider', async () => {
  const { id } = await make('viewer')
  const expiresAt = new Date(api.clock.now.getTime() + 60_000)
  const tries = [
    () => api.db.session.create({ data: { userId: id, token: randomUUID(), expiresAt } }),
    () => api.db.account.create({ data: { userId: id, accountId: id, providerId: 'credential', password: 'x' } }),
    () => api.db.twoFactor.create({ data: { userId: id, secret: 'x', backupCodes: 'x' } }),
  ]
  for (const one of tries) await expect(one()).rejects.toThrow('a service account does not sign in')
})

test('it is no person: not among the members, and counted with them', async () => {
  const { id, name } = await make('viewer')
  const listed = await query<{ items: { userId: string }[] }>(api, owner, 'member.list', { limit: 100 })
  expect(listed.items.map(({ userId }) => userId)).not.toContain(id)
  const found = await query<{ items: { id: string }[] }>(api, owner, 'serviceAccount.list', { search: name.slice(6) })
  expect(found.items).toMatchObject([{ id, grants: [{ role: 'viewer' }], mayChange: true }])
  const me = await query<{ user: { id: string } }>(api, owner, 'session.me')
  const asked = { path: 'serviceAccount.get', type: 'query' as const, input: { serviceAccountId: me.user.id } }
  expect((await callProcedure(api, { ...asked, cookie: owner })).code).toBe('not_found')
  const { organizationId } = tenant
  const countMax = await api.db.membership.count({ where: { organizationId } })
  await api.db.organizationQuota.create({ data: { organizationId, name: 'members', countMax } })
  expect((await tryMutate('serviceAccount.create', { name: 'x', role: 'viewer', scope: {} })).code).toBe(
    'quota_exceeded',
  )
  await api.db.organizationQuota.deleteMany({ where: { organizationId } })
})

test('who may see members of one site sees accounts with a role there, without their keys', async () => {
  const here = await make('viewer', { siteId: tenant.siteId })
  const other = await api.db.site.create({
    data: { organizationId: tenant.organizationId, farmId: tenant.farmId, name: randomUUID(), timeZone: 'UTC' },
  })
  const there = await make('viewer', { siteId: other.id })
  const { organizationId, farmId, siteId } = tenant
  const scope = { farmId, siteId, collectionId: null }
  const { cookie = '' } = (await person(api, organizationId, { role: 'admin', scope })).headers
  const { items } = await query<{ items: ServiceAccountView[] }>(api, cookie, 'serviceAccount.list', { limit: 100 })
  const ids = items.map(({ id }) => id)
  expect([ids.includes(here.id), ids.includes(there.id)]).toEqual([true, false])
  expect(items.find(({ id }) => id === here.id)).toMatchObject({ keys: null, mayChange: true })
  expect((await tryMutate('serviceAccount.remove', { serviceAccountId: there.id }, cookie)).code).toBe('not_found')
  expect((await tryMutate('serviceAccount.remove', { serviceAccountId: here.id }, cookie)).status).toBe(200)
})

test('the end of the organization ends its accounts', async () => {
  const gone = await createTenant(api, 'gone')
  const cookie = await signInAs(api, gone.organizationId, 'owner')
  const { id } = await make('viewer', {}, cookie)
  await api.db.membership.deleteMany({ where: { organizationId: gone.organizationId } })
  expect(await api.db.user.count({ where: { id } })).toBe(0)
})
