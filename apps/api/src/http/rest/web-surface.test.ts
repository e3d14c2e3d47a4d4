import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type AuthRoute, authRoutes } from '../../../test/auth-routes.ts'
import { rowsOf } from '../../../test/matrix/tenant-secrets.ts'
import { callRest } from '../../../test/rest-client.ts'
import { startTestApi, type TestApi } from '../../../test/test-api.ts'
import { testOrigin } from '../../../test/test-constants.ts'
import { createTenant, signInAs } from '../../../test/test-tenant.ts'
import { apiKeyPrefix } from '../../api-key/schema.ts'
import { procedurePolicies } from '../trpc/policies.ts'
import { readOperations } from './operations.ts'

let api: TestApi
/** A signed-in person whom other sites try to harm: nothing may change. */
let victim: { organizationId: string; cookie: string }
let cookie: string
let before: unknown

beforeAll(async () => {
  api = await startTestApi()
  const { organizationId } = await createTenant(api, 'victim')
  victim = { organizationId, cookie: await signInAs(api, organizationId, 'owner') }
  cookie = await signInAs(api, (await createTenant(api, 'own')).organizationId, 'owner')
  before = await everythingOf(victim.organizationId)
})
afterAll(() => api.close())

/** All rows of the organization and of its people. */
async function everythingOf(organizationId: string): Promise<unknown> {
  const people = { memberships: { some: { organizationId } } }
  const user = await api.db.user.findMany({ where: people, include: { sessions: true, accounts: true } })
  return { ...(await rowsOf(api.db, organizationId)), user }
}

const authChanges = authRoutes().filter(({ method }) => method !== 'GET')

const changes = [
  ...procedurePolicies()
    .filter(({ type }) => type === 'mutation')
    .map(({ path }) => ({ method: 'POST', path: `/api/trpc/${path}` })),
  ...readOperations()
    .operations.filter(({ method }) => method !== 'GET')
    .map(({ method, path }) => ({ method, path: `/api/v1${path}` })),
  ...authChanges,
]

const send = ({ method, path }: AuthRoute, headers: Record<string, string>) =>
  fetch(`${api.url}${path}`, {
    method,
    redirect: 'manual',
    headers: { cookie: victim.cookie, 'content-type': 'application/json', ...headers },
    ...(method === 'GET' ? {} : { body: '{}' }),
  })

const foreignHeaders: Record<string, string>[] = [
  { origin: 'https://evil.example' },
  { origin: 'null' },
  { origin: `${testOrigin}.evil.example` },
  { 'sec-fetch-site': 'cross-site' },
  { 'sec-fetch-site': 'same-site' },
  { origin: testOrigin, 'sec-fetch-site': 'cross-site' },
  // It is no key, and the cookie would count.
  { origin: 'https://evil.example', authorization: `Bearer ${apiKeyPrefix}none` },
]

test('the routes of better-auth are known', () => {
  const paths = authChanges.map(({ path }) => path.replace('/api/auth', ''))
  expect(paths).toEqual(expect.arrayContaining(['/sign-out', '/change-password', '/two-factor/disable']))
  expect(authChanges.length).toBeGreaterThan(25)
})

describe.each(changes)('$method $path', (change) => {
  test('is refused to another site, with any headers', async () => {
    for (const headers of foreignHeaders) {
      const answer = await send(change, headers)
      expect([answer.status, await answer.text()]).toEqual([403, expect.stringContaining('foreign_origin')])
    }
  })

  test('is not found in other letters, or refused', async () => {
    for (const path of [change.path.replace('/api', '/%61pi'), change.path.replace('/api', '//api')]) {
      const answer = await send({ ...change, path }, { origin: 'https://evil.example' })
      expect([403, 404]).toContain(answer.status)
    }
  })

  test('takes no form', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x']) {
      const answer = await send(change, { origin: testOrigin, 'content-type': type })
      expect([answer.status, await answer.text()]).toEqual([415, expect.stringContaining('unsupported_media_type')])
    }
  })

  test('is not refused to the dashboard', async () => {
    const answer = await send(change, { cookie, origin: testOrigin, 'sec-fetch-site': 'same-origin' })
    expect(await answer.text()).not.toMatch(/foreign_origin|ORIGIN/)
  })
})

describe('without any origin', () => {
  test.each(changes.filter((change) => !authChanges.includes(change)))(
    '$method $path is taken: no browser sent it',
    async (change) => {
      expect(await (await send(change, { cookie })).text()).not.toContain('foreign_origin')
    },
  )

  test.each(authChanges)('$method $path with a cookie is refused, or is none', async (change) => {
    const answer = await send(change, {})
    const isAbsent = answer.status === 404
    if (!isAbsent) expect([answer.status, await answer.text()]).toEqual([403, expect.stringContaining('ORIGIN')])
  })
})

test('no GET, and no mutation by GET, changes anything', async () => {
  const procedures = procedurePolicies().filter(({ type }) => type === 'mutation')
  for (const { path } of procedures)
    expect((await send({ method: 'GET', path: `/api/trpc/${path}?input=%7B%7D` }, {})).status).toBe(405)
  for (const route of authRoutes().filter(({ method }) => method === 'GET'))
    expect((await send(route, foreignHeaders[0] ?? {})).status).toBeLessThan(500)
})

test('the victim has everything as it was', async () => {
  expect(await everythingOf(victim.organizationId)).toEqual(before)
})

test('what other sites were refused works from the dashboard', async () => {
  const rename = { method: 'POST', path: '/api/auth/update-user' }
  const nameOf = async () => {
    const answer = await fetch(`${api.url}/api/trpc/session.me`, { headers: { cookie: victim.cookie } })
    return (await answer.text()).includes('Renamed')
  }
  const body = JSON.stringify({ name: 'Renamed' })
  for (const [origin, isRenamed] of [
    ['https://evil.example', false],
    [testOrigin, true],
  ] as const) {
    const headers = { cookie: victim.cookie, 'content-type': 'application/json', origin }
    await fetch(`${api.url}${rename.path}`, { method: rename.method, headers, body })
    expect(await nameOf()).toBe(isRenamed)
  }
})

test('answers may not be run, framed or taken for another type', async () => {
  for (const path of ['/healthz', '/api/v1/devices', '/api/v1/nothing', '/api/trpc/session.me', '/api/openapi.json']) {
    const { headers } = await fetch(`${api.url}${path}`)
    expect(Object.fromEntries(headers)).toMatchObject({
      'x-content-type-options': 'nosniff',
      'content-security-policy': expect.stringContaining("frame-ancestors 'none'"),
      'referrer-policy': 'no-referrer',
      'cross-origin-resource-policy': 'same-origin',
    })
    expect(headers.get('access-control-allow-origin')).toBeNull()
    if (/trpc|v1/.test(path)) expect([path, headers.get('cache-control')]).toEqual([path, 'no-store'])
  }
})

test('a request that no browser made is taken without an origin', async () => {
  const { organizationId } = await createTenant(api, 'curl')
  const answer = await callRest(api, '/api-keys', {
    method: 'POST',
    body: { name: 'By curl', role: 'viewer' },
    headers: { cookie: await signInAs(api, organizationId, 'owner') },
  })
  expect(answer.status).toBe(201)
})
