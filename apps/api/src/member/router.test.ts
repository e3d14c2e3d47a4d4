import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestApi, type TestApi } from '../../test/test-api.ts'
import { callProcedure, mutate, query } from '../../test/test-client.ts'
import { createPerson, createTenant, sessionCookie, signIn, signInAs, type TestTenant } from '../../test/test-tenant.ts'
import type { Role } from '../rules/permissions.ts'

let api: TestApi
let tenant: TestTenant

beforeAll(async () => {
  api = await startTestApi()
  tenant = await createTenant(api, 'own')
})
afterAll(() => api.close())

interface Grant {
  id: string
  role: Role
  mayTake: boolean
}
interface Member {
  userId: string
  grants: Grant[]
  mayRemove: boolean
  revision: number
  lastSignInAt: string | null
}

const change = (path: string, input: unknown, cookie: string) =>
  callProcedure(api, { path, type: 'mutation', input, cookie })

/** A new organization with so many owners. */
async function organizationOf(ownerCount: number) {
  const { organizationId } = await createTenant(api, `org-${Math.random()}`)
  const owners: { cookie: string; userId: string }[] = []
  for (let index = 0; index < ownerCount; index++) owners.push(await memberOf(organizationId, 'owner'))
  return { organizationId, owners }
}

async function memberOf(organizationId: string, role: Role) {
  const cookie = await signInAs(api, organizationId, role)
  const { user } = await query<{ user: { id: string } }>(api, cookie, 'session.me')
  return { cookie, userId: user.id }
}

const grantsOf = (organizationId: string, role: Role) => api.db.roleGrant.count({ where: { organizationId, role } })

test('the last owner can neither leave nor be demoted', async () => {
  const { organizationId, owners } = await organizationOf(1)
  const [owner] = owners
  if (!owner) throw new Error('no owner')
  const member = await query<Member>(api, owner.cookie, 'member.get', { userId: owner.userId })
  const left = await change('member.leave', {}, owner.cookie)
  expect([left.status, left.code]).toEqual([409, 'conflict'])
  expect(left.text).toContain('needs an owner')
  const input = { userId: owner.userId, grantId: member.grants[0]?.id }
  expect((await change('member.take', input, owner.cookie)).code).toBe('conflict')
  expect(await grantsOf(organizationId, 'owner')).toBe(1)
})

test('of two owners who leave at the same moment, one stays', async () => {
  const { organizationId, owners } = await organizationOf(2)
  const answers = await Promise.all(owners.map(({ cookie }) => change('member.leave', {}, cookie)))
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
  expect(await grantsOf(organizationId, 'owner')).toBe(1)
})

test('of two owners who remove each other at the same moment, one stays', async () => {
  const { organizationId, owners } = await organizationOf(2)
  const [first, second] = owners
  if (!first || !second) throw new Error('no owners')
  const answers = await Promise.all([
    change('member.remove', { userId: second.userId }, first.cookie),
    change('member.remove', { userId: first.userId }, second.cookie),
  ])
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
  expect(await grantsOf(organizationId, 'owner')).toBe(1)
})

test('a removed member has no access from the next request on, with the same session', async () => {
  const owner = await signInAs(api, tenant.organizationId, 'owner')
  const { cookie, userId } = await memberOf(tenant.organizationId, 'operator')
  await mutate(api, owner, 'member.remove', { userId })
  const answer = await callProcedure(api, { path: 'device.list', type: 'query', input: {}, cookie })
  expect([answer.status, answer.code]).toEqual([401, 'unauthenticated'])
  expect((await change('member.remove', { userId }, owner)).code).toBe('not_found')
})

test('an admin neither removes an owner nor takes the role', async () => {
  const { userId } = await memberOf(tenant.organizationId, 'owner')
  const admin = await signInAs(api, tenant.organizationId, 'admin')
  const member = await query<Member>(api, admin, 'member.get', { userId })
  expect([member.mayRemove, member.grants[0]?.mayTake]).toEqual([false, false])
  expect((await change('member.remove', { userId }, admin)).code).toBe('forbidden')
  const input = { userId, grantId: member.grants[0]?.id }
  expect((await change('member.take', input, admin)).code).toBe('forbidden')
})

test('an admin of a site gives roles in that site alone, and sees of others nothing', async () => {
  const { organizationId, siteId, farmId } = tenant
  const { userId } = await memberOf(organizationId, 'viewer')
  const siteAdmin = await api.db.user.create({
    data: { name: 'Site admin', email: 'site-admin@example.test' },
  })
  await api.db.membership.create({ data: { organizationId, userId: siteAdmin.id } })
  await api.db.roleGrant.create({ data: { organizationId, userId: siteAdmin.id, role: 'admin', siteId } })
  const elsewhere = await api.db.user.create({ data: { name: 'Elsewhere', email: 'elsewhere@example.test' } })
  const site = await api.db.site.create({ data: { organizationId, farmId, name: 'Beside', timeZone: 'UTC' } })
  await api.db.membership.create({ data: { organizationId, userId: elsewhere.id } })
  const grant = { organizationId, userId: elsewhere.id, role: 'viewer' as const, siteId: site.id }
  await api.db.roleGrant.create({ data: grant })

  const cookie = await sessionCookie(api, siteAdmin.id)
  const give = (scope: object) => change('member.grant', { userId, role: 'operator', scope }, cookie)
  expect((await give({})).code).toBe('forbidden')
  expect((await give({ farmId })).code).toBe('forbidden')
  expect((await give({ siteId })).status).toBe(200)
  expect((await give({ siteId })).code).toBe('conflict')
  const { items } = await query<{ items: Member[] }>(api, cookie, 'member.list', {})
  expect(items.map((member) => member.userId)).not.toContain(elsewhere.id)
  expect((await change('member.remove', { userId: elsewhere.id }, cookie)).code).toBe('not_found')
  const places = await query<{ scope: { kind: string } }[]>(api, cookie, 'member.grantable', {})
  expect(places.map(({ scope }) => scope.kind)).toEqual(['site', 'collection'])
})

test("a member's last role is not taken: the member is removed instead", async () => {
  const owner = await signInAs(api, tenant.organizationId, 'owner')
  const { userId } = await memberOf(tenant.organizationId, 'viewer')
  const { grants } = await query<Member>(api, owner, 'member.get', { userId })
  const answer = await change('member.take', { userId, grantId: grants[0]?.id }, owner)
  expect([answer.status, answer.code]).toEqual([409, 'conflict'])
  expect(answer.text).toContain('remove the member')
})

test('a person of two organizations works in the one that the session chose', async () => {
  const other = await createTenant(api, 'second')
  const { cookie, userId } = await memberOf(tenant.organizationId, 'owner')
  await api.db.membership.create({ data: { organizationId: other.organizationId, userId } })
  await api.db.roleGrant.create({ data: { organizationId: other.organizationId, userId, role: 'viewer' } })
  const own = await query<object[]>(api, cookie, 'session.organizations')
  expect(own).toMatchObject([
    { id: tenant.organizationId, roles: [{ role: 'owner', isOfPart: false }] },
    { id: other.organizationId, roles: [{ role: 'viewer', isOfPart: false }] },
  ])
  const current = async (of: string) =>
    (await query<{ organization: { id: string } }>(api, of, 'session.me')).organization.id
  expect(await current(cookie)).toBe(tenant.organizationId)
  await mutate(api, cookie, 'session.chooseOrganization', { organizationId: other.organizationId })
  expect(await current(cookie)).toBe(other.organizationId)
  // Also after the next sign-in.
  expect(await current(await sessionCookie(api, userId))).toBe(other.organizationId)
  const foreign = (await createTenant(api, 'foreign')).organizationId
  const answer = await change('session.chooseOrganization', { organizationId: foreign }, cookie)
  expect(answer.code).toBe('not_found')
  await mutate(api, cookie, 'member.leave', {})
  expect(await current(cookie)).toBe(tenant.organizationId)
})

test('a conflicting change of roles names the other author', async () => {
  const owner = await signInAs(api, tenant.organizationId, 'owner')
  const { userId } = await memberOf(tenant.organizationId, 'viewer')
  const { revision } = await query<Member>(api, owner, 'member.get', { userId })
  const grant = (role: Role) => change('member.grant', { userId, role, scope: {}, revision }, owner)
  expect((await grant('operator')).status).toBe(200)
  const late = await grant('auditor')
  expect([late.status, late.code]).toEqual([409, 'conflict'])
  expect(late.text).toMatch(/member was changed in the meantime: A owner changed role at \d\d:\d\d UTC/)
  const { grants, revision: now } = await query<Member>(api, owner, 'member.get', { userId })
  expect(JSON.parse(late.text).error.data.revision).toBe(now)
  const take = (seen: number) => change('member.take', { userId, grantId: grants[0]?.id, revision: seen }, owner)
  expect((await take(revision)).code).toBe('conflict')
  expect((await take(now)).status).toBe(200)
})

test('a member’s last sign-in is when the password was last right', async () => {
  const owner = await signInAs(api, tenant.organizationId, 'owner')
  const person = await createPerson(api, tenant.organizationId, 'viewer')
  const member = async () => {
    const { items } = await query<{ items: Member[] }>(api, owner, 'member.list', { search: person.email })
    return items[0]
  }
  expect((await member())?.lastSignInAt).toBeNull()
  expect((await signIn(api, { ...person, password: 'not the right one' })).status).toBe(401)
  expect((await member())?.lastSignInAt).toBeNull()
  await signIn(api, person)
  expect((await member())?.lastSignInAt).toBe(api.clock.now.toISOString())
})
