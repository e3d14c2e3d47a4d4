import { Writable } from 'node:stream'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePorts } from '../../../../../scripts/lib/free-ports.mjs'
import { AuthClient } from '../../../test/auth-client.ts'
import { type OidcClaims, type OidcProvider, startOidcProvider } from '../../../test/oidc-provider.ts'
import { startTestApi, type TestApi } from '../../../test/test-api.ts'
import { callProcedure, mutate, query } from '../../../test/test-client.ts'
import { testOrigin } from '../../../test/test-constants.ts'
import { createPerson, createTenant, signInAs } from '../../../test/test-tenant.ts'
import { defaultTenancy } from '../../rules/tenancy.ts'

const clientId = 'bootfarm'
const clientSecret = 'a secret between the two'
let provider: OidcProvider
let api: TestApi
let organizationId: string

beforeAll(async () => {
  provider = await startOidcProvider({ clientId, clientSecret, webUrl: testOrigin })
  const { issuer } = provider
  const rules = [{ domain: 'members.test', organizationSlug: 'own', role: 'operator' as const }]
  api = await startTestApi({
    people: { oidc: { issuer, clientId, clientSecret, name: 'Test provider', rules } },
  })
  organizationId = (await createTenant(api, 'own')).organizationId
})
afterAll(async () => {
  await api.close()
  provider.close()
})

/** Acts like a browser: to the provider, through it, and back. Returns where it ends. */
async function signInByProvider(as: OidcClaims, { change = (url: URL) => url, at = api } = {}) {
  provider.setClaims(as)
  const client = new AuthClient(at)
  const begun = await client.post('/sign-in/social', {
    provider: 'oidc',
    callbackURL: '/devices',
    errorCallbackURL: '/sign-in',
  })
  let url = String(begun.body.url)
  const asked = new URL(url).searchParams
  const jar = new Map<string, string>()
  while (url.startsWith(provider.issuer)) {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const answer = await fetch(url, { headers: { cookie }, redirect: 'manual' })
    for (const line of answer.headers.getSetCookie()) {
      const [name = '', value = ''] = line.split(';')[0]?.split('=') ?? []
      jar.set(name, value)
    }
    const next = answer.headers.get('location')
    if (!next) throw new Error(`the provider answered ${answer.status}: ${await answer.text()}`)
    url = new URL(next, url).toString()
  }
  const back = await client.get(change(new URL(url)).toString())
  return { client, asked, url, end: new URL(back.headers.get('location') ?? '', testOrigin) }
}

const verified = (email: string, name = 'Somebody Else') => ({ email, email_verified: true, name })
const me = (client: AuthClient) =>
  query<{ user: { email: string }; grants: { role: string }[] }>(api, client.cookie, 'session.me')

test('a person of a domain with a rule becomes a member with its role, with PKCE, state and nonce', async () => {
  const { client, asked, end } = await signInByProvider(verified('first@members.test'))
  expect(end.pathname).toBe('/devices')
  expect(asked.get('code_challenge_method')).toBe('S256')
  for (const name of ['code_challenge', 'state', 'nonce']) expect(asked.get(name)).toMatch(/.{20}/)
  expect(await me(client)).toMatchObject({
    user: { email: 'first@members.test' },
    grants: [{ role: 'operator' }],
  })
  const entries = await api.db.auditEntry.findMany({
    where: { organizationId, objectName: 'first@members.test' },
  })
  expect(entries.map(({ action }) => action).sort()).toEqual(['account.joinByDomain', 'account.signIn'])
})

test('whom nobody invited, and for whom no rule speaks, gets no account', async () => {
  const { end } = await signInByProvider(verified('stranger@elsewhere.test'))
  expect([end.pathname, end.searchParams.get('error')]).toEqual(['/sign-in', 'not_invited'])
  const unverified = { ...verified('second@members.test'), email_verified: false }
  expect((await signInByProvider(unverified)).end.searchParams.get('error')).toBe('not_verified')
  expect(
    await api.db.user.count({ where: { email: { in: ['stranger@elsewhere.test', 'second@members.test'] } } }),
  ).toBe(0)
})

test('a removed member stays removed, also at the next sign-in by the provider, until somebody invites', async () => {
  const owner = await signInAs(api, organizationId, 'owner')
  const as = verified('removed@members.test')
  const { client } = await signInByProvider(as)
  const { user } = await query<{ user: { id: string } }>(api, client.cookie, 'session.me')
  await mutate(api, owner, 'member.remove', { userId: user.id })
  const { client: again } = await signInByProvider(as)
  const asked = { path: 'device.list', type: 'query' as const, input: {}, cookie: again.cookie }
  expect((await callProcedure(api, asked)).status).toBe(401)
  await mutate(api, owner, 'invitation.create', { email: as.email, role: 'viewer', scope: {} })
  const token = api.mails.findLast(({ to }) => to === as.email)?.text.match(/\/invitation\/(\S+)/)?.[1]
  await mutate(api, again.cookie, 'invitation.accept', { token })
  expect((await callProcedure(api, asked)).status).toBe(200)
  expect(await me((await signInByProvider(as)).client)).toMatchObject({ grants: [{ role: 'viewer' }] })
})

test('an account of the same address is linked where the provider has verified it, and only then', async () => {
  const { email } = await createPerson(api, organizationId, 'viewer')
  const { end } = await signInByProvider({ ...verified(email), email_verified: false })
  expect(end.searchParams.get('error')).toBe('account_not_linked')
  const { client } = await signInByProvider(verified(email))
  expect(await me(client)).toMatchObject({ user: { email }, grants: [{ role: 'viewer' }] })
})

test('an answer with another state, and the same answer twice, open nothing', async () => {
  const as = verified('third@members.test')
  const change = (url: URL) => {
    url.searchParams.set('state', 'x'.repeat(32))
    return url
  }
  const { client } = await signInByProvider(as, { change })
  const asked = { path: 'session.me', type: 'query' as const, cookie: client.cookie }
  expect((await callProcedure(api, asked)).status).toBe(401)
  const { url } = await signInByProvider(as)
  const thief = new AuthClient(api)
  await thief.get(url)
  expect((await callProcedure(api, { ...asked, cookie: thief.cookie })).status).toBe(401)
})

test('a provider that was away when the API started is found once it is back, and all else works before', async () => {
  const [port = 0] = await freePorts(1)
  const lines: string[] = []
  const log = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk))
      done()
    },
  })
  const late = await startTestApi({
    log,
    people: {
      oidc: { issuer: `http://127.0.0.1:${port}`, clientId, clientSecret, name: 'Late provider', rules: [] },
    },
  })
  try {
    const signIn = async () => {
      const client = new AuthClient(late)
      return client.post('/sign-in/social', {
        provider: 'oidc',
        callbackURL: '/',
        errorCallbackURL: '/sign-in',
      })
    }
    expect((await signIn()).status).toBe(404)
    expect(lines.join('')).toContain('does not answer: nobody can sign in by Late provider until it does')
    const back = await new AuthClient(late).get(`${testOrigin}/api/auth/callback/oidc?code=x&state=y`)
    expect(back.headers.get('location')).toBe(`${testOrigin}/sign-in?error=provider_away`)
    const person = await createPerson(late, (await createTenant(late, 'late')).organizationId, 'owner')
    expect((await new AuthClient(late).post('/sign-in/email', person)).status).toBe(200)
    const there = await startOidcProvider({ port, clientId, clientSecret, webUrl: testOrigin })
    const begun = await signIn()
    there.close()
    expect([begun.status, String(begun.body.url)]).toEqual([200, expect.stringContaining(`${there.issuer}/auth`)])
  } finally {
    await late.close()
  }
})

test('where people come by themselves, an address that the provider has not verified opens and joins nothing', async () => {
  const { issuer } = provider
  const rules = [{ domain: 'members.test', organizationSlug: 'open', role: 'operator' as const }]
  const oidc = { issuer, clientId, clientSecret, name: 'Test provider', rules }
  const open = await startTestApi({ people: { oidc, tenancy: { ...defaultTenancy, isSelfService: true } } })
  try {
    const { organizationId: openId } = await createTenant(open, 'open')
    const intruder = { ...verified('intruder@members.test'), email_verified: false }
    expect((await signInByProvider(intruder, { at: open })).end.searchParams.get('error')).toBe('not_verified')
    expect(await open.db.user.count({ where: { email: intruder.email } })).toBe(0)

    // An account that an earlier release made for an address that nobody had verified, and its link to the provider.
    const boss = 'boss@partner.test'
    await signInByProvider(verified(boss), { at: open })
    const { id: userId } = await open.db.user.update({ where: { email: boss }, data: { emailVerified: false } })
    const link = { where: { userId, providerId: 'oidc' } }
    expect(await open.db.account.count(link)).toBe(1)
    const client = new AuthClient(open)
    await client.post('/request-password-reset', { email: boss })
    await expect.poll(() => open.mails.some(({ to }) => to === boss)).toBe(true)
    const token = open.mails.findLast(({ to }) => to === boss)?.text.match(/\/reset-password\/(\S+)/)?.[1]
    await client.post('/reset-password', { token, newPassword: 'correct horse battery' })
    expect(await open.db.account.count(link)).toBe(0)
    expect(await open.db.session.count({ where: { userId } })).toBe(0)
    expect(await open.db.membership.count({ where: { organizationId: openId } })).toBe(0)
  } finally {
    await open.close()
  }
})
