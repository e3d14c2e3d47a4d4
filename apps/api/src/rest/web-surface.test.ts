import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { callRest } from '../../test/rest-client.ts'
import { startTestApi, type TestApi } from '../../test/test-api.ts'
import { testOrigin } from '../../test/test-constants.ts'
import { createTenant, signInAs } from '../../test/test-tenant.ts'
import { procedurePolicies } from '../trpc/policies.ts'
import { readOperations } from './operations.ts'

let api: TestApi
let cookie: string

beforeAll(async () => {
  api = await startTestApi()
  const { organizationId } = await createTenant(api, 'own')
  cookie = await signInAs(api, organizationId, 'owner')
})
afterAll(() => api.close())

const changes = [
  ...procedurePolicies()
    .filter(({ type }) => type === 'mutation')
    .map(({ path }) => ({ method: 'POST', path: `/api/trpc/${path}` })),
  ...readOperations()
    .operations.filter(({ method }) => method !== 'GET')
    .map(({ method, path }) => ({ method, path: `/api/v1${path}` })),
  ...['sign-in/email', 'sign-out', 'change-password'].map((path) => ({
    method: 'POST',
    path: `/api/auth/${path}`,
  })),
]

const send = ({ method, path }: { method: string; path: string }, headers: Record<string, string>) =>
  fetch(`${api.url}${path}`, {
    method,
    headers: { cookie, 'content-type': 'application/json', ...headers },
    body: '{}',
  })

describe.each(changes)('$method $path', (change) => {
  test('is refused to another site, whatever it sends along', async () => {
    const foreign = [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { origin: `${testOrigin}.evil.example` },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { origin: testOrigin, 'sec-fetch-site': 'cross-site' },
    ]
    for (const headers of foreign) {
      const answer = await send(change, headers as Record<string, string>)
      expect([answer.status, await answer.text()]).toEqual([403, expect.stringContaining('foreign_origin')])
    }
  })

  test('takes no form', async () => {
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
    ]) {
      const answer = await send(change, { origin: testOrigin, 'content-type': type })
      expect([answer.status, await answer.text()]).toEqual([
        415,
        expect.stringContaining('unsupported_media_type'),
      ])
    }
  })

  test('is not refused to the dashboard', async () => {
    const answer = await send(change, { origin: testOrigin, 'sec-fetch-site': 'same-origin' })
    expect(await answer.text()).not.toContain('foreign_origin')
  })
})

test('answers may not be run, framed or taken for another type', async () => {
  for (const path of [
    '/healthz',
    '/api/v1/devices',
    '/api/v1/nothing',
    '/api/trpc/session.me',
    '/api/openapi.json',
  ]) {
    const { headers } = await fetch(`${api.url}${path}`)
    expect(Object.fromEntries(headers)).toMatchObject({
      'x-content-type-options': 'nosniff',
      'content-security-policy': expect.stringContaining("frame-ancestors 'none'"),
      'referrer-policy': 'no-referrer',
      'cross-origin-resource-policy': 'same-origin',
    })
    expect(headers.get('access-control-allow-origin')).toBeNull()
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
