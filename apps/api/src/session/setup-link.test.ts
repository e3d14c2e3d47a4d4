import { afterEach, beforeEach, expect, test } from 'vitest'
import { startTestApi, type TestApi } from '../../test/test-api.ts'
import { callProcedure, query } from '../../test/test-client.ts'
import { testOrigin } from '../../test/test-constants.ts'
import { signIn } from '../../test/test-tenant.ts'
import { createSetupLink, offerSetupLink } from './setup-link.ts'

let api: TestApi
beforeEach(async () => {
  api = await startTestApi()
})
afterEach(() => api.close())

const person = { name: 'First Owner', email: 'First@Example.test', password: 'correct horse battery' }
const newLink = () => createSetupLink({ db: api.db, clock: api.clock.read }, testOrigin)

async function newToken(): Promise<string> {
  return (await newLink())?.match(/^http:\/\/localhost:3000\/setup\/(\S+)$/)?.[1] ?? ''
}

const complete = (token: string, more: object = {}) => {
  const input = { token, organizationName: 'Ärzte & Söhne', ...person, ...more }
  return callProcedure(api, { path: 'setup.complete', type: 'mutation', input })
}

test('the link makes the first owner once, also for two at the same moment, and then there is no other', async () => {
  const token = await newToken()
  const answers = await Promise.all([complete(token), complete(token, { email: 'second@example.test' })])
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
  expect(await api.db.user.count()).toBe(1)
  expect(await api.db.organization.findMany({ select: { name: true, slug: true } })).toEqual([
    { name: 'Ärzte & Söhne', slug: 'arzte-sohne' },
  ])
  const email = (await api.db.user.findFirstOrThrow({ select: { email: true } })).email
  const answer = await signIn(api, { ...person, email: email.toUpperCase() })
  expect(answer.status).toBe(200)
  const cookie = answer.headers.getSetCookie().join('; ')
  expect(await query(api, cookie, 'session.me')).toMatchObject({ grants: [{ role: 'owner', farmId: null }] })
  expect(await newLink()).toBeNull()
  expect((await complete(token)).code).toBe('conflict')
  const entries = await api.db.auditEntry.findMany({ select: { action: true, objectKind: true } })
  expect(entries.sort((a, b) => a.action.localeCompare(b.action))).toEqual([
    { action: 'account.signIn', objectKind: 'member' },
    { action: 'setup.complete', objectKind: 'organization' },
  ])
})

test('a link ends after a day, and when another is made; of each only the hash is kept', async () => {
  const first = await newToken()
  const second = await newToken()
  expect((await complete(first)).code).toBe('not_found')
  expect(JSON.stringify(await api.db.setupLink.findMany())).not.toContain(second)
  api.clock.advance(24 * 3_600_000)
  const answer = await complete(second)
  expect([answer.status, answer.code]).toEqual([409, 'conflict'])
  expect(answer.text).toContain('owner-link')
})

test('of several processes that start, one prints a link, which holds until it is used, replaced or over', async () => {
  const context = { db: api.db, clock: api.clock.read }
  const offer = () => offerSetupLink(context, testOrigin)
  const offers = await Promise.all([offer(), offer(), offer()])
  const links = offers.flatMap((one) => (one && 'link' in one ? [one.link] : []))
  expect(links).toHaveLength(1)
  const heldUntil = new Date(api.clock.read().getTime() + 24 * 3_600_000)
  expect(offers.filter((one) => one && 'heldUntil' in one)).toEqual([{ heldUntil }, { heldUntil }])

  api.clock.advance(24 * 3_600_000)
  expect(await offer(), 'the old one is over').toHaveProperty('link')
  const token = await newToken()
  expect(await offer(), 'one that was asked for is kept, too').toHaveProperty('heldUntil')
  expect((await complete(token)).status).toBe(200)
  expect(await offer()).toBeNull()
})

test('a weak password leaves the link as it is', async () => {
  const token = await newToken()
  expect((await complete(token, { password: 'first-owner-pass' })).code).toBe('invalid')
  expect((await complete(token, { organizationName: 'a\u0007b' })).code).toBe('invalid')
  expect((await complete(token)).status).toBe(200)
})
