import { afterAll, beforeAll, expect, test } from 'vitest'
import { AuthClient } from '../../../test/auth-client.ts'
import { startTestApi, type TestApi } from '../../../test/test-api.ts'
import { callProcedure, mutate, query } from '../../../test/test-client.ts'
import { createPerson, createTenant, type TestTenant } from '../../../test/test-tenant.ts'
import { totpOf } from '../../../test/totp.ts'

let api: TestApi
let tenant: TestTenant

beforeAll(async () => {
  api = await startTestApi()
  tenant = await createTenant(api, 'own')
})
afterAll(() => api.close())

type Sign = { email: string; password: string }

async function person(): Promise<{ client: AuthClient; sign: Sign }> {
  const sign = await createPerson(api, tenant.organizationId, 'owner')
  const client = new AuthClient(api)
  expect((await client.post('/sign-in/email', sign)).status).toBe(200)
  return { client, sign }
}

const actionsOf = async (email: string) =>
  (await api.db.auditEntry.findMany({ where: { objectName: email }, orderBy: { id: 'asc' } })).map(
    ({ action }) => action,
  )
const isSignedIn = async (client: AuthClient) =>
  (await callProcedure(api, { path: 'session.me', type: 'query', cookie: client.cookie })).status === 200

test('an address without an account is refused like a wrong password, in the same words', async () => {
  const { sign } = await person()
  const client = new AuthClient(api)
  const wrong = await client.post('/sign-in/email', { ...sign, password: 'not the password' })
  const unknown = await client.post('/sign-in/email', { ...sign, email: 'nobody@example.test' })
  expect(wrong.status).toBe(401)
  expect(unknown).toEqual(wrong)
  await expect.poll(() => actionsOf(sign.email)).toEqual(['account.signIn', 'account.signInFailed'])
  const mails = api.mails.length
  const asked = await client.post('/request-password-reset', { email: sign.email })
  expect(await client.post('/request-password-reset', { email: 'nobody@example.test' })).toEqual(asked)
  await expect.poll(() => api.mails.length).toBe(mails + 1)
})

test('one account takes ten attempts a minute from an address, and an unknown one no more', async () => {
  for (const email of [(await createPerson(api, tenant.organizationId, 'viewer')).email, 'no@example.test']) {
    const client = new AuthClient(api)
    const statuses: number[] = []
    for (let attempt = 0; attempt < 11; attempt++)
      statuses.push((await client.post('/sign-in/email', { email, password: 'guess number n' })).status)
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 401), 429])
    await api.db.rateLimit.deleteMany({ where: { key: { not: { startsWith: 'account:' } } } })
  }
})

test('with a second factor a password alone opens nothing; a code does, and each backup code once', async () => {
  const { client, sign } = await person()
  const { body } = await client.post('/two-factor/enable', { password: sign.password })
  const secret = new URL(String(body.totpURI)).searchParams.get('secret') ?? ''
  const [backupCode] = body.backupCodes as string[]
  const code = () => totpOf(secret, Date.now())
  expect((await client.post('/two-factor/verify-totp', { code: await code() })).status).toBe(200)
  expect(await isSignedIn(client)).toBe(true)

  const next = new AuthClient(api)
  const half = await next.post('/sign-in/email', sign)
  expect(half.body).toMatchObject({ twoFactorRedirect: true })
  expect(await isSignedIn(next)).toBe(false)
  expect((await next.post('/two-factor/verify-totp', { code: '000000' })).status).toBe(401)
  expect(await isSignedIn(next)).toBe(false)
  expect((await next.post('/two-factor/verify-totp', { code: await code() })).status).toBe(200)
  expect(await isSignedIn(next)).toBe(true)

  const lost = new AuthClient(api)
  await lost.post('/sign-in/email', sign)
  expect((await lost.post('/two-factor/verify-backup-code', { code: backupCode })).status).toBe(200)
  const again = new AuthClient(api)
  await again.post('/sign-in/email', sign)
  expect((await again.post('/two-factor/verify-backup-code', { code: backupCode })).status).toBe(401)

  expect((await next.post('/two-factor/disable', { password: 'not the password' })).status).toBe(400)
  expect((await next.post('/two-factor/disable', { password: sign.password })).status).toBe(200)
  expect(await actionsOf(sign.email)).toEqual([
    'account.signIn',
    'account.totpOn',
    'account.signIn',
    'account.signIn',
    'account.totpOff',
  ])
  const row = await api.db.auditEntry.findMany({ where: { objectName: sign.email } })
  expect(JSON.stringify(row)).not.toContain(secret)
})

test('a session that is used is extended, and so is the cookie in the browser', async () => {
  const { client, sign } = await person()
  const ask = () => client.get(`${api.url}/api/trpc/session.me`)
  expect((await ask()).headers.getSetCookie()).toEqual([])
  const dayMs = 86_400_000
  const where = { user: { email: sign.email } }
  await api.db.session.updateMany({ where, data: { expiresAt: new Date(Date.now() + 2 * dayMs) } })
  const [cookie = ''] = (await ask()).headers.getSetCookie()
  expect(cookie).toMatch(/session_token=.+; Max-Age=604800; .*HttpOnly/)
  const { expiresAt } = await api.db.session.findFirstOrThrow({ where })
  expect(expiresAt.getTime()).toBeGreaterThan(Date.now() + 6 * dayMs)
  expect((await ask()).headers.getSetCookie()).toEqual([])
  expect(await isSignedIn(client)).toBe(true)
})

test('a new password by mail ends every session; its link is used once', async () => {
  const { client, sign } = await person()
  const password = 'another correct horse'
  await client.post('/request-password-reset', { email: sign.email })
  await expect.poll(() => api.mails.findLast(({ to }) => to === sign.email)?.text).toBeDefined()
  const token = api.mails.findLast(({ to }) => to === sign.email)?.text.match(/reset-password\/(\S+)/)?.[1]
  const other = new AuthClient(api)
  expect((await other.post('/reset-password', { token, newPassword: 'short' })).status).toBe(400)
  expect((await other.post('/reset-password', { token, newPassword: password })).status).toBe(200)
  expect((await other.post('/reset-password', { token, newPassword: password })).status).toBe(400)
  expect(await isSignedIn(client)).toBe(false)
  expect((await other.post('/sign-in/email', sign)).status).toBe(401)
  expect((await other.post('/sign-in/email', { ...sign, password })).status).toBe(200)
  expect(await actionsOf(sign.email)).toContain('account.resetPassword')
})

test('sessions are listed without their secrets and ended one by one, and all others at once', async () => {
  const { client, sign } = await person()
  const [second, third] = [new AuthClient(api), new AuthClient(api)]
  for (const one of [second, third]) await one.post('/sign-in/email', sign)
  const sessions = await query<{ id: string; isCurrent: boolean; address: string }[]>(api, client.cookie, 'session.own')
  expect(sessions.map(({ address }) => address)).toEqual(['127.0.0.1', '127.0.0.1', '127.0.0.1'])
  const tokens = await api.db.session.findMany({ select: { token: true } })
  for (const { token } of tokens) expect(JSON.stringify(sessions)).not.toContain(token)
  await mutate(api, client.cookie, 'session.end', { sessionId: sessions[0]?.id })
  expect(await isSignedIn(third)).toBe(false)
  await mutate(api, client.cookie, 'session.endOthers', undefined)
  expect([await isSignedIn(client), await isSignedIn(second)]).toEqual([true, false])
  const foreign = await person()
  const [own] = await query<{ id: string }[]>(api, foreign.client.cookie, 'session.own')
  const call = { path: 'session.end', type: 'mutation' as const, cookie: client.cookie }
  expect((await callProcedure(api, { ...call, input: { sessionId: own?.id } })).code).toBe('not_found')
  const list = await fetch(`${api.url}/api/auth/list-sessions`, { headers: { cookie: client.cookie } })
  expect(list.status).toBe(404)
})

test('nobody signs up where that is not switched on, and a password keeps to the rule', async () => {
  const { client, sign } = await person()
  const signUp = { name: 'Somebody', email: 'new@example.test', password: 'correct horse battery' }
  expect((await new AuthClient(api).post('/sign-up/email', signUp)).status).toBe(400)
  const change = { currentPassword: sign.password, revokeOtherSessions: true }
  const own = `${sign.email.split('@')[0]}-123`
  expect((await client.post('/change-password', { ...change, newPassword: own })).status).toBe(400)
  const changed = await client.post('/change-password', { ...change, newPassword: 'a much better horse' })
  expect(changed.status).toBe(200)
  expect(await actionsOf(sign.email)).toContain('account.changePassword')
})
