import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestApi, type TestApi } from '../../test/test-api.ts'
import { callProcedure, query } from '../../test/test-client.ts'
import { createTenant, signIn, signInAs, type TestTenant } from '../../test/test-tenant.ts'

let api: TestApi
let tenant: TestTenant
let cookie: string

beforeAll(async () => {
  api = await startTestApi()
  tenant = await createTenant(api, 'own')
  cookie = await signInAs(api, tenant.organizationId, 'owner')
})
afterAll(() => api.close())

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
