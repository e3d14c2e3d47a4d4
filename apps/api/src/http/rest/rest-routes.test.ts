import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import path from 'node:path'
import { Validator } from '@seriousme/openapi-schema-validator'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { inputOfSample, samples } from '../../../test/procedure-samples.ts'
import { callRest, requestOf } from '../../../test/rest-client.ts'
import type { SampleTenant } from '../../../test/sample.ts'
import { createSampleTenant } from '../../../test/sample-tenant.ts'
import { startTestApi, type TestApi } from '../../../test/test-api.ts'
import { signInAs } from '../../../test/test-tenant.ts'
import { errorTable } from '../../errors/app-error.ts'
import { readOperations } from './operations.ts'

/** Procedures without a REST declaration; nothing new goes in here. */
const yetToCome: string[] = []

let api: TestApi
let tenant: SampleTenant
let cookie: string

beforeAll(async () => {
  api = await startTestApi()
  tenant = await createSampleTenant(api, 'own')
  cookie = await signInAs(api, tenant.organizationId, 'owner')
})
afterAll(() => api.close())

const { operations, excluded, missing } = readOperations()

const sent = (operation: (typeof operations)[number]) =>
  requestOf(operation, inputOfSample(operation.id, tenant, samples[operation.id]?.ownId?.(tenant)))

test('every query and mutation is a REST operation, or gives the reason why not', () => {
  const howTo =
    "add to its .meta(…) rest: { method: 'GET', path: '/things/{thingId}', summary: 'A thing' }, with creates: '/things/{id}' " +
    "where it creates one and silent: true where its output says nothing; or rest: { excluded: 'why' }. See docs/reference/api.md"
  expect(missing.filter((id) => !yetToCome.includes(id)).map((id) => `${id}: ${howTo}`)).toEqual([])
  expect(yetToCome.filter((id) => !missing.includes(id))).toEqual([])
  for (const { reason } of excluded) expect(reason).toMatch(/\w{3}/)
})

test('no two operations are one', () => {
  const addresses = operations.map(({ method, path }) => `${method} ${path.replaceAll(/\{\w+\}/g, '{}')}`)
  expect(new Set(addresses).size).toBe(addresses.length)
})

test('the OpenAPI document is valid, and describes every operation', async () => {
  const answer = await fetch(`${api.url}/api/openapi.json`)
  expect(answer.status).toBe(200)
  const document = (await answer.json()) as { openapi: string; paths: Record<string, Record<string, object>> }
  expect(await new Validator().validate(structuredClone(document))).toMatchObject({ valid: true })
  expect(document.openapi).toBe('3.1.0')
  for (const { path, method, status, id } of operations)
    expect(document.paths[path]?.[method.toLowerCase()]).toMatchObject({
      operationId: id,
      responses: { [status]: {}, 400: {}, 401: {}, 403: {}, 500: {}, 503: {} },
    })
})

test('people read of every operation and every code, on pages that run nothing', async () => {
  const docs = await (await fetch(`${api.url}/api/docs`)).text()
  for (const { id } of operations) expect(docs).toContain(`<article id="${id}">`)
  const problems = await fetch(`${api.url}/api/docs/problems`)
  expect(problems.headers.get('content-security-policy')).not.toContain('script')
  const text = await problems.text()
  for (const code of Object.keys(errorTable)) expect(text).toContain(`<tr id="${code}">`)
  expect(docs + text).not.toMatch(/<script| style="| on\w+="/)
})

test('docs/reference/api.md lists every code: these lines are missing there', () => {
  const text = readFileSync(path.join(import.meta.dirname, '../../../../../docs/reference/api.md'), 'utf8')
  const lines = Object.entries(errorTable).map(([code, { status, title }]) => `| \`${code}\` | ${status} | ${title} |`)
  expect(lines.filter((line) => !text.includes(line))).toEqual([])
})

describe.each(operations)('$method $path', (operation) => {
  test('does what its procedure does, with the status that it promises', async () => {
    const { path, call } = sent(operation)
    const answer = await callRest(api, path, { ...call, headers: { cookie } })
    expect([answer.status, answer.status === operation.status ? '' : answer.text]).toEqual([operation.status, ''])
    if (operation.status === 204) expect(answer.text).toBe('')
    else expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
    if (!operation.creates) return
    const location = answer.headers.get('location')?.replace('/api/v1', '') ?? ''
    expect((await callRest(api, location, { headers: { cookie } })).status).toBe(200)
  })

  test('tells nobody anything, as a problem', async () => {
    const { path, call } = sent(operation)
    const answer = await callRest(api, path, call)
    expect(answer.headers.get('content-type')).toMatch(/^application\/problem\+json/)
    expect(answer.status).toBe(401)
    expect(answer.body).toMatchObject({
      type: '/api/docs/problems#unauthenticated',
      status: 401,
      code: 'unauthenticated',
      requestId: expect.stringMatching(/^[0-9a-f-]{36}$/),
    })
  })

  test('refuses what it does not take', async () => {
    const { path } = sent(operation)
    const address = path.split('?')[0] ?? ''
    const wrong = operation.body
      ? await callRest(api, address, {
          method: operation.method,
          body: { noSuchField: 1 },
          headers: { cookie },
        })
      : await callRest(api, `${address}?noSuchField=1`, { method: operation.method, headers: { cookie } })
    expect([wrong.status, wrong.body]).toMatchObject([
      400,
      {
        code: 'invalid',
        errors: expect.arrayContaining([expect.objectContaining({ field: 'noSuchField' })]),
      },
    ])
  })
})

test.each([
  ['limit=ten', 'limit'],
  ['limit=1e1', 'limit'],
  ['limit=%2010', 'limit'],
  ['limit=10&limit=20', 'limit'],
  ['limit=101', 'limit'],
  ['search=%00', ''],
])('a query with %s is refused, and says which field', async (query, field) => {
  const answer = await callRest(api, `/devices?${query}`, { headers: { cookie } })
  expect([answer.status, answer.body]).toMatchObject([400, { code: 'invalid', errors: [{ field }] }])
})

test.each([
  ['arrays', '[', ']'],
  ['objects', '{"a":', '}'],
])('a body of %s that lie in each other 100,000 times is refused like any other', async (_, open, close) => {
  const depth = 100_000
  const rawBody = `{"name":${open.repeat(depth)}1${close.repeat(depth)}}`
  const answer = await callRest(api, '/farms', { method: 'POST', rawBody, headers: { cookie } })
  expect([answer.status, answer.body]).toMatchObject([400, { code: 'invalid' }])
  expect(answer.text).toContain('nested more than 32 levels deep')
  expect((await callRest(api, '/farms', { headers: { cookie } })).status).toBe(200)
})

test('a list is read page by page until there is no next cursor', async () => {
  const names: string[] = []
  let cursor: string | null = ''
  while (cursor !== null) {
    const answer = await callRest(api, `/devices?search=pc-&limit=4${cursor && `&cursor=${cursor}`}`, {
      headers: { cookie },
    })
    const page = answer.body as { items: { name: string }[]; nextCursor: string | null }
    names.push(...page.items.map(({ name }) => name))
    cursor = page.nextCursor
  }
  expect(names).toEqual(['pc-01', 'pc-02', 'pc-03', 'pc-04', 'pc-05', 'pc-06'])
})

test('a table as large as the dashboard sends is taken, and a larger one is not', async () => {
  const path = `/sites/${tenant.siteId}/device-imports`
  const send = (size: number) => {
    const csv = `name,mac\n${'x'.repeat(size)},02:bf:00:00:00:01\n`
    return callRest(api, path, { method: 'POST', body: { csv }, headers: { cookie } })
  }
  expect((await send(1_300_000)).status).not.toBe(413)
  expect(await send(7_000_000)).toMatchObject({ status: 413, body: { code: 'too_large' } })
})

describe('a refusal before an operation runs is a problem, too:', () => {
  const draining = () => `/edges/${tenant.spareEdgeId}/draining`
  const text = { 'content-type': 'text/plain' }
  const cases: [string, () => Promise<{ status: number; body: unknown }>, object][] = [
    ['This address does not exist', () => callRest(api, '/nothing'), { status: 404, code: 'not_found' }],
    [
      'a method too many',
      () => callRest(api, '/devices', { method: 'PATCH' }),
      { status: 405, code: 'method_not_allowed' },
    ],
    ['no JSON', () => put('{"draining":'), { status: 400, code: 'invalid_body' }],
    ['another type', () => put('draining=true', text), { status: 415, code: 'unsupported_media_type' }],
    ['a prototype', () => put('{"__proto__":{"draining":true}}'), { status: 400, code: 'invalid_body' }],
    ['too much', () => put(JSON.stringify({ draining: 'x'.repeat(1_100_000) })), { status: 413, code: 'too_large' }],
    [
      'an address too long',
      () => callRest(api, `/devices/${'x'.repeat(6_000)}`),
      { status: 414, code: 'uri_too_long' },
    ],
    ['an address that is none', () => callRest(api, '/devices/%zz'), { status: 400, code: 'invalid' }],
    [
      'headers too large',
      () => callRest(api, '/devices', { headers: { 'x-much': 'x'.repeat(20_000) } }),
      { status: 431, code: 'headers_too_large' },
    ],
  ]
  const put = (rawBody: string, headers = {}) =>
    callRest(api, draining(), { method: 'PUT', rawBody, headers: { cookie, ...headers } })

  test.each(cases)('%s', async (_name, send, expected) => {
    const answer = await send()
    expect(answer.body).toMatchObject(expected)
    expect(answer.body).toMatchObject({
      type: expect.stringMatching(/^\/api\/docs\/problems#/),
      requestId: expect.any(String),
    })
    expect(answer.status).toBe((expected as { status: number }).status)
  })

  test('a wrong method gets the list of right ones', async () => {
    const answer = await callRest(api, `/boot-menus/${randomUUID()}`, { method: 'POST' })
    expect(answer.headers.get('allow')).toBe('GET, PUT, DELETE, HEAD')
  })

  test('bytes that are no HTTP', async () => {
    const { port } = new URL(api.url)
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const request = httpRequest({
        port,
        method: 'GET',
        path: '/api/v1/devices',
        headers: { 'content-length': '5, 6' },
      })
      request.on('response', (response) => resolve(response.resume().statusCode))
      request.on('error', reject)
      request.end()
    })
    expect(status).toBe(400)
  })
})
