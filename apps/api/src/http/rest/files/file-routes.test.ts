import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { bootReports, bootWith, EdgeClient } from '../../../../test/edge-client.ts'
import { startTestApi, type TestApi } from '../../../../test/test-api.ts'
import { createTenant, makeJoinToken, signInAs, type TestTenant } from '../../../../test/test-tenant.ts'
import { openApiDocument } from '../openapi/document.ts'
import { fileOperations } from './file-routes.ts'
import { rowsPerRead } from './table-file.ts'

let api: TestApi
let tenant: TestTenant
let cookie: string

beforeAll(async () => {
  api = await startTestApi()
  tenant = await createTenant(api, 'files')
  cookie = await signInAs(api, tenant.organizationId, 'viewer')
})
afterAll(() => api.close())

async function get(path: string, as = cookie) {
  const answer = await fetch(`${api.url}/api/v1${path}`, { headers: { cookie: as } })
  return { status: answer.status, headers: answer.headers, text: await answer.text() }
}

/** More than are read at once, so that a file has several pages. */
async function addDevices(): Promise<number> {
  const { organizationId, siteId, collectionId } = tenant
  const count = 2 * rowsPerRead + 1
  await api.db.device.createMany({
    data: Array.from({ length: count }, (_, index) => ({
      organizationId,
      siteId,
      collectionId,
      name: `many-${index}`,
      mac: `02:bf:01:00:${[index >> 8, index & 255].map((byte) => byte.toString(16).padStart(2, '0')).join(':')}`,
      ...(index === count - 1 ? { personality: { LAST: 'x' } } : {}),
    })),
  })
  return count
}

test('a file has every device once, however many there are, in both forms', async () => {
  const count = (await addDevices()) + tenant.deviceIds.length
  const csv = await get('/device-exports')
  expect(csv.headers.get('content-type')).toBe('text/csv; charset=utf-8')
  expect(csv.headers.get('content-disposition')).toMatch(/^attachment; filename="devices-\d{4}-\d\d-\d\d\.csv"$/)
  const lines = csv.text.trimEnd().split('\r\n')
  // A variable of the last device alone has its column in the heading.
  expect(lines[0]).toContain('"personality.LAST"')
  expect(new Set(lines).size).toBe(count + 1)
  const { text } = await get('/device-exports?format=jsonl')
  const names = text
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as { name: string }).name)
  expect(new Set(names).size).toBe(count)
  expect(await get('/device-exports?format=jsonl&enabled=false')).toMatchObject({ status: 200, text: '' })
})

test('a file of boots has those of the list, in its order, and no formula', async () => {
  const edge = await EdgeClient.enrolled(api.url, await makeJoinToken(api, tenant))
  const mac = tenant.macs[0] ?? ''
  const boots = [1, 2, 3].map((number) => bootWith({ id: randomUUID(), mac, menuEntry: `=${number}` }))
  const failed = bootWith({ id: randomUUID(), mac, outcome: { kind: 'failed', phase: 'nbp', cause: 'tftp_timeout' } })
  await edge.reports(1, bootReports(1, [...boots, failed]))
  const csv = await get('/boot-exports?outcome=ready&sort=durationUs')
  expect(csv.headers.get('content-disposition')).toMatch(/filename="boots-\d{4}-\d\d-\d\d\.csv"$/)
  const lines = csv.text.trimEnd().split('\r\n')
  expect(lines).toHaveLength(4)
  const sorted = boots.map(({ id }) => id).sort()
  expect(sorted.map((id, index) => lines[index + 1]?.includes(id))).toEqual([true, true, true])
  expect(lines[1]).toMatch(/"'=\d"/)
  const { text } = await get('/boot-exports?format=jsonl&failedCause=tftp_timeout')
  expect(JSON.parse(text)).toMatchObject({ id: failed.id, outcome: 'failed' })
  expect((await get('/boot-exports', '')).status).toBe(401)
})

test('who may not read gets no file, and a wrong filter is explained', async () => {
  expect((await get('/device-exports', '')).status).toBe(401)
  expect((await get('/audit-exports')).status).toBe(403)
  for (const [search, field] of [
    ['format=xml', 'format'],
    ['colour=red', 'colour'],
    ['enabled=yes', 'enabled'],
    ['siteId=here', 'siteId'],
  ]) {
    const { status, text } = await get(`/device-exports?${search}`)
    expect([status, JSON.parse(text)]).toMatchObject([400, { code: 'invalid', errors: [{ in: 'query', field }] }])
  }
  const answer = await fetch(`${api.url}/api/v1/device-exports`, { method: 'POST', headers: { cookie } })
  expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
})

test('each file is described, with its media types and filters', () => {
  const paths = openApiDocument().paths as Record<string, { get: Record<string, unknown> }>
  for (const { path, id, types } of fileOperations)
    expect(paths[path]?.get).toMatchObject({
      operationId: id,
      responses: { 200: { content: Object.fromEntries(types.map((type) => [type, {}])) }, 401: {} },
    })
  expect(JSON.stringify(paths['/device-exports'])).toContain('"lastOutcome"')
})
