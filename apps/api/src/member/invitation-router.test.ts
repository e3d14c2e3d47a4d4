import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestApi, type TestApi } from '../../test/test-api.ts'
import { callProcedure, mutate, query } from '../../test/test-client.ts'
import { createTenant, signIn, signInAs, type TestTenant } from '../../test/test-tenant.ts'
import { organizationPlace } from '../rules/place.ts'
import { acceptInvitation } from './accept-invitation.ts'

let api: TestApi
let tenant: TestTenant
let owner: string

beforeAll(async () => {
  api = await startTestApi()
  tenant = await createTenant(api, 'own')
  owner = await signInAs(api, tenant.organizationId, 'owner')
})
afterAll(() => api.close())

const password = 'correct horse battery'
const account = { name: 'New Person', password }

interface Invitation {
  id: string
  state: string
  sentAt: string | null
}

/** The token of the newest mail to this address. */
function tokenTo(email: string): string {
  const mail = api.mails.findLast(({ to }) => to === email)
  return mail?.text.match(/\/invitation\/(\S+)/)?.[1] ?? ''
}

async function invited(role = 'operator', scope: object = {}) {
  const email = `${randomUUID()}@example.test`
  const { id } = await mutate<Invitation>(api, owner, 'invitation.create', { email, role, scope })
  return { id, email, token: tokenTo(email) }
}

const accept = (token: string, more: object = { account }, cookie?: string) =>
  callProcedure(api, { path: 'invitation.accept', type: 'mutation', input: { token, ...more }, cookie })

async function cookieOf(email: string): Promise<string> {
  const answer = await signIn(api, { email, password })
  expect(answer.status).toBe(200)
  return answer.headers.getSetCookie().join('; ')
}

test('an invited address makes an account by the link and has the role there, and no more', async () => {
  const { email, token } = await invited('operator', { siteId: tenant.siteId })
  const offer = await query<object>(api, '', 'invitation.offer', { token })
  expect(offer).toMatchObject({ email, role: 'operator', hasAccount: false, scope: { kind: 'site' } })
  expect((await accept(token)).status).toBe(200)
  const cookie = await cookieOf(email)
  const me = await query<{ grants: object[] }>(api, cookie, 'session.me')
  expect(me.grants).toMatchObject([{ role: 'operator', siteId: tenant.siteId }])
  const again = await accept(token)
  expect([again.status, again.code]).toEqual([409, 'conflict'])
})

test('the mail names who invites and where, and a line end in a name begins no header', async () => {
  const organization = { where: { id: tenant.organizationId } }
  await api.db.organization.update({ ...organization, data: { name: 'Evil\r\nBcc: all@example.test' } })
  const { email } = await invited()
  const mail = api.mails.findLast(({ to }) => to === email)
  expect(mail?.subject).toBe('Invitation to Evil Bcc: all@example.test on Bootfarm')
  expect(mail?.text).toContain('with the role operator of the whole organization')
  await api.db.organization.update({ ...organization, data: { name: 'Own' } })
})

test('of the token only the hash is kept, and what was sent is marked as sent', async () => {
  const { id, token } = await invited()
  const row = await api.db.invitation.findFirstOrThrow({ where: { id } })
  expect(JSON.stringify(row)).not.toContain(token)
  expect(row.sentAt).not.toBeNull()
  const { items } = await query<{ items: object[] }>(api, owner, 'invitation.list', {})
  expect(JSON.stringify(items)).not.toContain(row.tokenHash)
})

test('an invitation sent again has a new link, and the old one ends', async () => {
  const { id, email, token } = await invited()
  await mutate(api, owner, 'invitation.resend', { invitationId: id })
  const old = await accept(token)
  expect([old.status, old.code]).toEqual([404, 'not_found'])
  expect((await accept(tokenTo(email))).status).toBe(200)
})

test('a revoked invitation, and one a week old, are accepted by nobody', async () => {
  const revoked = await invited()
  await mutate(api, owner, 'invitation.revoke', { invitationId: revoked.id })
  expect((await accept(revoked.token)).text).toContain('was revoked')
  const old = await invited()
  api.clock.advance(7 * 86_400_000)
  expect((await accept(old.token)).text).toContain('has expired')
  await mutate(api, owner, 'invitation.resend', { invitationId: old.id })
  expect((await accept(tokenTo(old.email))).status).toBe(200)
})

test('two who accept at once become one member with one grant', async () => {
  const { email, token } = await invited()
  const answers = await Promise.all([accept(token), accept(token), accept(token)])
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409])
  const user = await api.db.user.findUniqueOrThrow({ where: { email }, select: { id: true } })
  expect(await api.db.roleGrant.count({ where: { userId: user.id } })).toBe(1)
})

test('an account that is there accepts signed in, and nobody else does with its link', async () => {
  const first = await invited('viewer', { siteId: tenant.siteId })
  await accept(first.token)
  const cookie = await cookieOf(first.email)
  const input = { email: first.email, role: 'operator', scope: {} }
  await mutate(api, owner, 'invitation.create', input)
  const token = tokenTo(first.email)
  const anonymous = await accept(token)
  expect([anonymous.status, anonymous.code]).toEqual([401, 'unauthenticated'])
  const other = await accept(token, {}, await signInAs(api, tenant.organizationId, 'viewer'))
  expect([other.status, other.code]).toEqual([403, 'forbidden'])
  expect((await accept(token, {}, cookie)).status).toBe(200)
  const { grants } = await query<{ grants: { role: string }[] }>(api, cookie, 'session.me')
  expect(grants.map(({ role }) => role)).toEqual(['viewer', 'operator'])
})

test('nobody invites to a role, or a place, that is not his own to give', async () => {
  const admin = await signInAs(api, tenant.organizationId, 'admin')
  // Their sessions are older than a grant of owner allows.
  await api.db.session.updateMany({ data: { confirmedAt: api.clock.now } })
  const create = (cookie: string, role: string, scope: object) => {
    const input = { email: `${randomUUID()}@example.test`, role, scope }
    return callProcedure(api, { path: 'invitation.create', type: 'mutation', input, cookie })
  }
  expect((await create(admin, 'owner', {})).code).toBe('forbidden')
  expect((await create(admin, 'admin', {})).status).toBe(200)
  expect((await create(owner, 'owner', { siteId: tenant.siteId })).code).toBe('invalid')
  expect((await create(owner, 'viewer', { siteId: randomUUID() })).code).toBe('not_found')
  const bad = { email: 'no address', role: 'viewer', scope: {} }
  const answer = { path: 'invitation.create', type: 'mutation' as const, input: bad, cookie: owner }
  expect((await callProcedure(api, answer)).code).toBe('invalid')
})

test('the same invitation twice is a conflict, and so is a role that is had', async () => {
  const { email, token } = await invited('viewer')
  const input = { email: email.toUpperCase(), role: 'viewer', scope: {} }
  const again = { path: 'invitation.create', type: 'mutation' as const, input, cookie: owner }
  expect((await callProcedure(api, again)).code).toBe('conflict')
  await accept(token)
  expect((await callProcedure(api, again)).text).toContain('already has this role')
})

test.each([
  ['short', 'at least 12'],
  ['my-new-Person-pass', 'must not contain your name'],
])('the password %s is refused with the rule', async (tried, rule) => {
  const { token } = await invited()
  const answer = await accept(token, { account: { ...account, password: tried } })
  expect(answer.code).toBe('invalid')
  expect(answer.text.toLowerCase()).toContain(rule)
})

test('inviting and accepting are in the audit log', async () => {
  const { email, token } = await invited()
  await accept(token)
  const entries = await api.db.auditEntry.findMany({ where: { objectName: email }, orderBy: { id: 'asc' } })
  expect(entries.map(({ action, objectKind }) => [action, objectKind])).toEqual([
    ['invitation.create', 'invitation'],
    ['invitation.accept', 'member'],
  ])
  expect(JSON.stringify(entries)).not.toContain(token)
})

test('an invitation ends with its inviter: removed, or without the right, until somebody sends it again', async () => {
  const admin = await signInAs(api, tenant.organizationId, 'admin')
  const { user } = await query<{ user: { id: string } }>(api, admin, 'session.me')
  const offered = async (role: string) => {
    const email = `${randomUUID()}@example.test`
    const { id } = await mutate<Invitation>(api, admin, 'invitation.create', { email, role, scope: {} })
    return { id, email, token: tokenTo(email) }
  }
  const [demoted, removed] = [await offered('admin'), await offered('viewer')]
  const { grants } = await query<{ grants: { id: string }[] }>(api, owner, 'member.get', { userId: user.id })
  await mutate(api, owner, 'member.grant', { userId: user.id, role: 'viewer', scope: {} })
  await mutate(api, owner, 'member.take', { userId: user.id, grantId: grants[0]?.id })
  const refused = await accept(demoted.token)
  expect([refused.status, refused.text]).toEqual([409, expect.stringContaining('can no longer grant this role')])
  expect(await api.db.user.count({ where: { email: demoted.email } })).toBe(0)
  await mutate(api, owner, 'invitation.resend', { invitationId: demoted.id })
  await mutate(api, owner, 'member.remove', { userId: user.id })
  expect((await accept(tokenTo(demoted.email))).status).toBe(200)
  expect((await accept(removed.token)).text).toContain('was revoked')
})

test('nobody has a password hashed for a token that is made up', async () => {
  const hashed: string[] = []
  const request = { action: 'invitation.accept', address: null, id: null, place: organizationPlace, recordedCount: 0 }
  const context = { db: api.db, clock: api.clock.read, person: null, request }
  const hashPassword = async (given: string) => {
    hashed.push(given)
    return 'a hash'
  }
  const accepting = acceptInvitation({ ...context, hashPassword }, { token: randomUUID(), account })
  await expect(accepting).rejects.toMatchObject({ code: 'not_found' })
  expect(hashed).toEqual([])
})
