import { afterAll, beforeAll, expect, test } from 'vitest'
import { callRest } from '../../../test/rest-client.ts'
import { startTestApi, type TestApi } from '../../../test/test-api.ts'
import { createTenant, signInAs, type TestTenant } from '../../../test/test-tenant.ts'
import { openApiDocument } from './openapi/document.ts'

let api: TestApi
let tenant: TestTenant
let cookie: string

beforeAll(async () => {
  api = await startTestApi()
  tenant = await createTenant(api, 'preconditions')
  cookie = await signInAs(api, tenant.organizationId, 'owner')
})
afterAll(() => api.close())

const call = (path: string, method = 'GET', headers: Record<string, string> = {}, body?: unknown) =>
  callRest(api, path, { method, headers: { cookie, ...headers }, ...(body === undefined ? {} : { body }) })

async function createDevice(): Promise<{ path: string; etag: string }> {
  const { collectionId } = tenant
  const suffix = Math.random().toString(16).slice(2, 6).padEnd(4, '0')
  const mac = `02:bf:02:00:${suffix.slice(0, 2)}:${suffix.slice(2)}`
  const { status, headers } = await call('/devices', 'POST', {}, { collectionId, name: `pc-${suffix}`, mac })
  expect(status).toBe(201)
  const path = headers.get('location')?.replace('/api/v1', '') ?? ''
  return { path, etag: (await call(path)).headers.get('etag') ?? '' }
}

test('an object that has not changed is not sent again', async () => {
  const { path, etag } = await createDevice()
  expect(etag).toMatch(/^"1\.[\w-]{22}"$/)
  for (const known of [etag, `W/${etag}`, `"other", ${etag}`])
    expect(await call(path, 'GET', { 'if-none-match': known })).toMatchObject({ status: 304, text: '' })
  expect(await call(path, 'GET', { 'if-none-match': '"1"' })).toMatchObject({ status: 200 })
  await call(path, 'PATCH', { 'if-match': etag }, { enabled: false })
  const { status, headers } = await call(path, 'GET', { 'if-none-match': etag })
  expect([status, headers.get('etag')]).toEqual([200, expect.stringMatching(/^"2\./)])
  expect((await call('/devices')).headers.get('etag')).toBeNull()
  expect((await call(`/farms/${tenant.farmId}/overview`)).headers.get('etag')).toMatch(/^"[\w-]{22}"$/)
})

test('a change by an old tag fails and names the current revision', async () => {
  const { path, etag } = await createDevice()
  expect((await call(path, 'PATCH', { 'if-match': etag }, { enabled: false })).status).toBe(200)
  for (const old of [etag, '"1"', `W/${etag}`])
    for (const method of ['PATCH', 'DELETE'])
      expect(await call(path, method, { 'if-match': old }, method === 'PATCH' ? {} : undefined)).toMatchObject({
        status: 412,
        body: { code: 'precondition_failed', revision: 2 },
      })
  // Without the header the revision of the body is compared, as before.
  expect(await call(path, 'PATCH', {}, { revision: 1 })).toMatchObject({ status: 409, body: { revision: 2 } })
  expect((await call(path, 'PATCH', { 'if-match': '"2"' }, { revision: 2, enabled: true })).status).toBe(200)
  expect((await call(path, 'DELETE', { 'if-match': '"3"' })).status).toBe(200)
})

test('a webhook, a schedule and rules name their revision, too', async () => {
  const rules = `/sites/${tenant.siteId}/adoption-rules`
  const { headers } = await call(rules)
  const tag = headers.get('etag') ?? ''
  const rule = { conditions: { vendorClassPrefix: 'x' }, action: { kind: 'ignore' } }
  const none = { macPrefix: null, vendorClassContains: null, architecture: null, relayNetwork: null }
  const body = { rules: [{ ...rule, conditions: { ...none, ...rule.conditions } }] }
  expect((await call(rules, 'PUT', { 'if-match': tag }, body)).status).toBe(200)
  expect(await call(rules, 'PUT', { 'if-match': tag }, body)).toMatchObject({
    status: 412,
    body: { revision: expect.stringMatching(/^[0-9a-f]{64}$/) },
  })
})

test('a change without a revision, or with an unclear one, is refused', async () => {
  const { path } = await createDevice()
  expect(await call(path, 'PATCH', {}, { enabled: false })).toMatchObject({
    status: 428,
    body: { code: 'precondition_required' },
  })
  for (const wrong of ['1', '"x"', '"1", "2"', '']) {
    const { status, body } = await call(path, 'PATCH', { 'if-match': wrong }, {})
    expect([wrong, status, body]).toMatchObject([wrong, 400, { errors: [{ in: 'header', field: 'if-match' }] }])
  }
  expect((await call(path, 'PATCH', { 'if-match': '"2"' }, { revision: 1 })).status).toBe(400)
  expect((await call(`${path}/boot-again`, 'POST', { 'if-match': '"1"' })).status).toBe(400)
  expect((await call(path, 'PATCH', { 'if-match': '*' }, { revision: 1, enabled: false })).status).toBe(200)
})

test('the description has the headers and their answers', () => {
  const paths = openApiDocument().paths as Record<string, Record<string, { parameters: object[]; responses: object }>>
  const device = paths['/devices/{deviceId}']
  expect(device?.get).toMatchObject({
    parameters: expect.arrayContaining([expect.objectContaining({ name: 'If-None-Match', in: 'header' })]),
    responses: { 200: { headers: { etag: {} } }, 304: {} },
  })
  for (const method of ['patch', 'delete'])
    expect(device?.[method]).toMatchObject({
      parameters: expect.arrayContaining([expect.objectContaining({ name: 'If-Match', in: 'header' })]),
      responses: { 412: {}, 428: {} },
    })
  expect(JSON.stringify(paths['/devices']?.get)).not.toContain('If-None-Match')
})
