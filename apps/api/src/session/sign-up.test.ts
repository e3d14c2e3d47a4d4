import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { AuthClient } from '../../test/auth-client.ts'
import { startTestApi, type TestApi } from '../../test/test-api.ts'
import { callProcedure, mutate, query } from '../../test/test-client.ts'
import { createPerson, createTenant, signIn, signInAs } from '../../test/test-tenant.ts'
import { defaultTenancy } from '../rules/tenancy.ts'

// From an address to an organization of one's own, and what stands in the way of those who try it with others'
// addresses.

let api: TestApi
beforeAll(async () => {
  const tenancy = {
    ...defaultTenancy,
    isSelfService: true,
    quotas: { devices: 5 },
    organizationsPerPersonMax: 2,
  }
  api = await startTestApi({ people: { tenancy } })
})
afterAll(() => api.close())

const password = 'correct horse battery'
const open = (path: string, input: object, type: 'query' | 'mutation' = 'mutation') =>
  callProcedure(api, { path, type, input })
const mailsTo = (email: string) => api.mails.filter(({ to }) => to === email)
const linkTo = (email: string) => /\/sign-up\/(\S+)/.exec(mailsTo(email).at(-1)?.text ?? '')?.[1] ?? ''

async function ask(email: string): Promise<string> {
  expect((await open('signUp.ask', { email })).status).toBe(200)
  await expect.poll(() => mailsTo(email).length).toBeGreaterThan(0)
  return linkTo(email)
}

test('an address gets a link, nothing is made before it is opened, and it is used once', async () => {
  const email = `${randomUUID()}@example.test`
  const token = await ask(email)
  expect(await api.db.user.findUnique({ where: { email } })).toBeNull()
  expect((await open('signUp.get', { token }, 'query')).data).toEqual({ email })
  const own = { token, name: 'Somebody', password: `${email.split('@')[0]}!` }
  expect((await open('signUp.complete', own)).code).toBe('invalid')
  const both = await Promise.all([1, 2].map(() => open('signUp.complete', { ...own, password })))
  // The other one finds the link gone, or the account made.
  expect(both.filter(({ status }) => status === 200)).toHaveLength(1)
  expect(await api.db.user.count({ where: { email } })).toBe(1)
  expect((await open('signUp.complete', { ...own, password })).code).toBe('not_found')
  expect((await signIn(api, { email, password })).status).toBe(200)
})

test('an address that has an account is answered the same and told by mail alone', async () => {
  const tenant = await createTenant(api, randomUUID())
  const known = await createPerson(api, tenant.organizationId, 'viewer')
  const toKnown = await open('signUp.ask', { email: known.email })
  const toUnknown = await open('signUp.ask', { email: `${randomUUID()}@example.test` })
  expect([toKnown.status, toKnown.text]).toEqual([toUnknown.status, toUnknown.text])
  await expect.poll(() => mailsTo(known.email).length).toBe(1)
  expect(mailsTo(known.email)[0]?.subject).toBe('You already have a Bootfarm account')
  expect(linkTo(known.email)).toBe('')
})

test('an address gets three mails an hour whoever asks, and a link ends after an hour', async () => {
  const email = `${randomUUID()}@example.test`
  const answers = [1, 2, 3, 4, 5].map(() => open('signUp.ask', { email }))
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
  await expect.poll(() => mailsTo(email).length).toBe(3)
  api.clock.advance(3_600_000)
  expect((await open('signUp.get', { token: linkTo(email) }, 'query')).code).toBe('not_found')
})

test('who signed up makes organizations, owns them, has the quotas of self-service, and no more than allowed', async () => {
  const email = `${randomUUID()}@example.test`
  await open('signUp.complete', { token: await ask(email), name: 'Somebody', password })
  const client = new AuthClient(api)
  await client.post('/sign-in/email', { email, password })
  const access = await query(api, client.cookie, 'session.access')
  expect(access).toMatchObject({ email, isPlatformOperator: false, isSelfService: true })
  expect((await callProcedure(api, { path: 'session.me', type: 'query', cookie: client.cookie })).status).toBe(401)
  const found = (name: string) =>
    callProcedure(api, {
      path: 'organization.found',
      type: 'mutation',
      cookie: client.cookie,
      input: { name },
    })
  const all = await Promise.all(['One', 'Two', 'Three', 'Four'].map(found))
  expect(all.map(({ status }) => status).sort()).toEqual([200, 200, 409, 409])
  const me = await query<{ grants: { role: string }[] }>(api, client.cookie, 'session.me')
  expect(me.grants.map(({ role }) => role)).toEqual(['owner'])
  const { quotas } = await query<{ quotas: object[] }>(api, client.cookie, 'organization.usage', {})
  expect(quotas).toContainEqual({ name: 'devices', used: 0, allowed: 5 })
  expect(quotas).toContainEqual({ name: 'sites', used: 0, allowed: null })
})

test('a person confirms with the password, and a guesser is stopped', async () => {
  const tenant = await createTenant(api, randomUUID())
  const person = await createPerson(api, tenant.organizationId, 'owner')
  const client = new AuthClient(api)
  await client.post('/sign-in/email', person)
  const confirm = (given: string) =>
    callProcedure(api, {
      path: 'session.confirm',
      type: 'mutation',
      cookie: client.cookie,
      input: { password: given },
    })
  expect((await confirm('wrong')).code).toBe('invalid')
  expect((await confirm(person.password)).status).toBe(200)
  const guesses = await Promise.all(Array.from({ length: 10 }, () => confirm('wrong')))
  expect(guesses.some(({ code }) => code === 'rate_limited')).toBe(true)
  expect((await confirm(person.password)).code).toBe('rate_limited')
})

test('where self-service is off, sign-up is closed in plain words, by every door', async () => {
  const closed = await startTestApi()
  try {
    const tenant = await createTenant(closed, randomUUID())
    const cookie = await signInAs(closed, tenant.organizationId, 'owner')
    const doors = [
      { path: 'signUp.ask', input: { email: 'new@example.test' } },
      { path: 'signUp.complete', input: { token: 'x', name: 'Somebody', password } },
      { path: 'organization.found', input: { name: 'Mine' } },
    ]
    for (const door of doors) {
      const told = await callProcedure(closed, { ...door, type: 'mutation', cookie })
      expect([door.path, told.status, told.code]).toEqual([door.path, 403, 'sign_up_closed'])
    }
    const direct = { name: 'Somebody', email: 'new@example.test', password }
    expect((await new AuthClient(closed).post('/sign-up/email', direct)).status).toBe(400)
    expect(closed.mails).toEqual([])
    const offer = await callProcedure(closed, { path: 'session.signIn', type: 'query' })
    expect(offer.data).toMatchObject({ isSelfService: false })
    await expect(mutate(closed, cookie, 'farm.create', { name: 'Still' })).resolves.toBeDefined()
  } finally {
    await closed.close()
  }
})
