import { Writable } from 'node:stream'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { bootWith } from '../../../test/edge-client.ts'
import { callRest } from '../../../test/rest-client.ts'
import { startTestApi, type TestApi } from '../../../test/test-api.ts'
import { testOrigin } from '../../../test/test-constants.ts'
import { TestSite } from '../../../test/test-site.ts'
import { escapeForTerminals } from './request-log.ts'

const uuid = /^[0-9a-f-]{36}$/
const chunks: string[] = []
let wake = () => {}
let api: TestApi
let site: TestSite

beforeAll(async () => {
  const log = new Writable({
    write(chunk, _encoding, done) {
      chunks.push(String(chunk))
      wake()
      done()
    },
  })
  api = await startTestApi({ log })
  site = await TestSite.open(api, 'own', 'owner')
})
afterAll(() => api.close())

type Line = Record<string, unknown>

/** Each line as a log collector reads it; throws where one is no JSON. */
function lines(): Line[] {
  return chunks
    .join('')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Line)
}

/** The line of a request, which is written when its connection has taken the answer. */
async function requestLine(requestId: string | null): Promise<Line> {
  for (;;) {
    const written = new Promise<void>((resolve) => {
      wake = resolve
    })
    const line = lines().find((each) => each.msg === 'request' && each.requestId === requestId)
    if (line) return line
    await written
  }
}

test('a request is one line: who by ids, what by its template, and no secret', async () => {
  const secretPlaces = { cookie: site.cookie, origin: testOrigin, 'x-secret': 'Zebra-1' }
  const path = `/api/v1/devices/${site.deviceId}?cursor=Zebra-2`
  const answer = await fetch(`${api.url}${path}`, { headers: secretPlaces })
  const line = await requestLine(answer.headers.get('x-request-id'))
  expect(line).toMatchObject({
    level: 30,
    method: 'GET',
    route: '/api/v1/devices/:deviceId',
    status: answer.status,
    durationMs: expect.any(Number),
    actorKind: 'person',
    actorId: expect.stringMatching(uuid),
    organizationId: site.tenant.organizationId,
  })
  const all = chunks.join('')
  for (const secret of ['Zebra', site.cookie.split('=')[1] ?? '', '@']) expect(all).not.toContain(secret)
})

test('a request id of the right form is kept, any other is replaced', async () => {
  const idOf = async (id: string) =>
    (await fetch(`${api.url}/healthz`, { headers: { 'x-request-id': id } })).headers.get('x-request-id')
  expect(await idOf('01JD7Z0Q9W-balancer.1')).toBe('01JD7Z0Q9W-balancer.1')
  for (const strange of ['short', 'a'.repeat(65), 'with spaces in it', '"},{"level":60', '<script>1</script>'])
    expect(await idOf(strange)).toMatch(uuid)
})

test('every answer has its request id: problems, procedures, sign-in, edges, and where no route is', async () => {
  for (const path of [
    '/api/v1/devices',
    '/api/trpc/session.me',
    '/api/auth/get-session',
    '/edge/v1/state',
    '/no',
    '/%zz',
  ]) {
    const answer = await fetch(`${api.url}${path}`)
    const id = answer.headers.get('x-request-id')
    expect([path, id]).toEqual([path, expect.stringMatching(uuid)])
    const body = await answer.text()
    if (body.includes('requestId')) expect(JSON.parse(body)).toMatchObject({ requestId: id })
  }
})

test('an audit entry has the id of its request', async () => {
  const id = 'balancer-request-7'
  const headers = { cookie: site.cookie, origin: testOrigin }
  const answer = await callRest(api, '/collections', {
    method: 'POST',
    body: { siteId: site.tenant.siteId, name: 'Lab 9' },
    headers: { ...headers, 'x-request-id': id },
  })
  expect([answer.status, answer.headers.get('x-request-id')]).toEqual([201, id])
  expect(await api.db.auditEntry.count({ where: { requestId: id } })).toBe(1)
})

test('no text of a device or a caller starts a new line', async () => {
  const forged = '\n{"level":60,"msg":"forged"}\n'
  await site.report({ ...bootWith({ id: crypto.randomUUID(), mac: site.mac }), menuEntry: forged })
  await site.edge.send({
    method: 'POST',
    path: '/edge/v1/heartbeat',
    body: JSON.stringify({ agentVersion: forged }),
  })
  await fetch(`${api.url}/api/v1/devices/${encodeURIComponent(forged)}`, { headers: { 'user-agent': 'x' } })
  expect(lines().filter(({ msg }) => msg === 'forged')).toEqual([])
})

test('a line has no character that a terminal acts on, and reads as the same text', () => {
  const text = 'bell\x07 del\x7f next\x85 csi\x9b31m turned\u202e back\u2069 kept ä 漢'
  const line = escapeForTerminals(JSON.stringify({ text }))
  expect(line).toMatch(/^[\x20-\x7e\u00a0-\u2029\u202f-\u2065\u206a-\uffff]*$/)
  expect(JSON.parse(line)).toEqual({ text })
})

test('an edge’s request names the edge, and its applied reports have the same id', async () => {
  await site.report(bootWith({ id: crypto.randomUUID(), mac: site.mac }))
  const applied = lines().findLast(({ msg }) => msg === 'reports applied')
  expect(applied).toMatchObject({ edgeId: site.edge.edgeId, bootEpoch: 1 })
  expect(await requestLine(String(applied?.requestId))).toMatchObject({
    route: '/edge/v1/reports',
    actorKind: 'edge',
    actorId: site.edge.edgeId,
    organizationId: site.tenant.organizationId,
  })
})

test('a caller who left before the answer is logged as such', async () => {
  const gone = new AbortController()
  const { counter } = JSON.parse(String((await site.edge.state('0.0', 0)).body?.payload)) as {
    counter: number
  }
  const listening = api.nextListener()
  const waiting = site.edge.state(`1.${counter}`, 25_000, gone.signal)
  await listening
  gone.abort()
  await expect(waiting).rejects.toThrow()
  for (;;) {
    const written = new Promise<void>((resolve) => {
      wake = resolve
    })
    if (lines().some(({ route, status }) => route === '/edge/v1/state' && status === 499)) break
    await written
  }
})
