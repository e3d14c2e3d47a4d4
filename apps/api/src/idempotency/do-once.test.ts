import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { callRest } from '../../test/rest-client.ts'
import { startTestApi, type TestApi } from '../../test/test-api.ts'
import { createTenant, signInAs, type TestTenant } from '../../test/test-tenant.ts'
import { dropOldAnswers } from './do-once.ts'

const dayMs = 86_400_000

let api: TestApi
let tenant: TestTenant
let cookie: string

beforeAll(async () => {
  api = await startTestApi()
  tenant = await createTenant(api, 'own')
  cookie = await signInAs(api, tenant.organizationId, 'owner')
})
afterAll(() => api.close())

const entries = [{ title: 'Local disk', starts: { kind: 'local_disk' } }]

function createMenu(key: string | undefined, name: string, as = cookie) {
  return callRest(api, `/farms/${tenant.farmId}/boot-menus`, {
    method: 'POST',
    body: { name, timeoutMs: 10_000, defaultEntry: 0, entries },
    headers: { cookie: as, 'idempotency-key': key },
  })
}

const countMenus = (name: string) => api.db.bootMenu.count({ where: { name } })

test('a creation that is sent again is done once, and answered the same', async () => {
  const key = randomUUID()
  const first = await createMenu(key, 'once')
  expect([first.status, first.headers.get('idempotency-replayed')]).toEqual([201, null])
  const again = await createMenu(key, 'once')
  expect([again.status, again.text, again.headers.get('location')]).toEqual([
    201,
    first.text,
    first.headers.get('location'),
  ])
  expect(again.headers.get('idempotency-replayed')).toBe('true')
  expect(await countMenus('once')).toBe(1)
})

test('ten at the same time are one', async () => {
  const key = randomUUID()
  const answers = await Promise.all(Array.from({ length: 10 }, () => createMenu(key, 'at once')))
  expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
  expect(answers[0]?.status).toBe(201)
  expect(await countMenus('at once')).toBe(1)
})

test('the same key with something else is refused, and does nothing', async () => {
  const key = randomUUID()
  await createMenu(key, 'first')
  const other = await createMenu(key, 'second')
  expect([other.status, other.body]).toMatchObject([422, { code: 'idempotency_key_reused' }])
  expect(await countMenus('second')).toBe(0)
})

test('what went wrong may be sent again with its key', async () => {
  const key = randomUUID()
  await createMenu(undefined, 'taken')
  expect((await createMenu(key, 'taken')).status).toBe(409)
  await api.db.bootMenu.deleteMany({ where: { name: 'taken' } })
  expect((await createMenu(key, 'taken')).status).toBe(201)
})

test("another's key is another key", async () => {
  const key = randomUUID()
  await createMenu(key, 'mine')
  const as = await signInAs(api, tenant.organizationId, 'admin')
  expect((await createMenu(key, 'theirs', as)).status).toBe(201)
})

test('a key is forgotten after a day', async () => {
  const key = randomUUID()
  await createMenu(key, 'today')
  api.clock.advance(dayMs)
  expect((await createMenu(key, 'tomorrow')).status).toBe(201)
  api.clock.advance(dayMs)
  await dropOldAnswers({ db: api.db, clock: api.clock.read })
  expect(await api.db.idempotentRequest.count()).toBe(0)
})

test('a secret in a kept answer is read by nobody who has the database', async () => {
  const key = randomUUID()
  const request = {
    method: 'POST',
    body: { name: 'A script', role: 'viewer' },
    headers: { cookie, 'idempotency-key': key },
  }
  const { secret } = (await callRest(api, '/api-keys', request)).body as { secret: string }
  expect((await callRest(api, '/api-keys', request)).body).toMatchObject({ secret })
  const rows = await api.db.idempotentRequest.findMany()
  const kept = Buffer.concat(rows.map(({ answer }) => Buffer.from(answer ?? [])))
  expect(kept.length).toBeGreaterThan(0)
  expect(kept.includes(secret)).toBe(false)
  expect(JSON.stringify(rows)).not.toContain(key)
})

test('a key that is none is refused', async () => {
  const answer = await createMenu('with space', 'none')
  expect([answer.status, answer.body]).toMatchObject([400, { errors: [{ field: 'idempotency-key' }] }])
})
