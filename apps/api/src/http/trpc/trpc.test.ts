import { PassThrough } from 'node:stream'
import { parse } from 'csv-parse/sync'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { authRoutes } from '../../../test/auth-routes.ts'
import { EdgeClient } from '../../../test/edge-client.ts'
import { hostileTexts, printableTexts } from '../../../test/hostile-texts.ts'
import { hostileRelease } from '../../../test/matrix/test-releases.ts'
import { plantHostileTexts } from '../../../test/plant-hostile-texts.ts'
import { inputOfSample, samples } from '../../../test/procedure-samples.ts'
import { callRest, requestOf } from '../../../test/rest-client.ts'
import type { SampleTenant } from '../../../test/sample.ts'
import { createSampleTenant } from '../../../test/sample-tenant.ts'
import { startTestApi, type TestApi } from '../../../test/test-api.ts'
import { callProcedure, mutate } from '../../../test/test-client.ts'
import { testOrigin } from '../../../test/test-constants.ts'
import { createTenant, makeJoinToken, signInAs, type TestTenant } from '../../../test/test-tenant.ts'
import { advanceAllRollouts } from '../../rollout/advance-rollouts.ts'
import { readOperations } from '../rest/operations.ts'
import { procedurePolicies } from './policies.ts'

// Sends hostile texts in every text that devices, edges and people may write, then reads them wherever they are shown.

/** Three organizations and some hundred requests, beside other tests. */
const plantingMsMax = 120_000
let api: TestApi
let tenant: SampleTenant
let planted: TestTenant
let cookie: string
let plantedCookie: string
const log = new PassThrough()
let logged = ''
log.on('data', (chunk: Buffer) => {
  logged += chunk.toString('utf8')
})

beforeAll(async () => {
  api = await startTestApi({ log })
  tenant = await createSampleTenant(api, 'own')
  cookie = await signInAs(api, tenant.organizationId, 'owner')
  planted = await createTenant(api, 'planted')
  plantedCookie = await signInAs(api, planted.organizationId, 'owner')
  await plantHostileTexts({
    url: api.url,
    rows: planted,
    joinTokens: [await makeJoinToken(api, planted), await makeJoinToken(api, planted)],
    now: api.clock.now.getTime(),
    release: hostileRelease,
    mutate: (path, input) => mutate(api, plantedCookie, path, input),
    advanceRollouts: () => advanceAllRollouts({ db: api.serverDb, clock: api.clock.read }),
  })
}, plantingMsMax)
afterAll(() => api.close())

type Json = string | number | boolean | null | undefined | Json[] | { [name: string]: Json }

/** Yields one input per text in this one, with the hostile text in that place. */
function* poisoned(input: Json, text: string, path: string[] = []): Generator<Json> {
  if (typeof input === 'string' && !/^[0-9a-f]{8}-[0-9a-f-]{27}$/.test(input)) yield text
  if (Array.isArray(input))
    for (const [index, item] of input.entries())
      for (const bad of poisoned(item, text, path)) yield input.with(index, bad)
  else if (typeof input === 'object' && input !== null)
    for (const [name, value] of Object.entries(input))
      for (const bad of poisoned(value, text, [...path, name])) yield { ...input, [name]: bad }
}

/** Fields that samples leave out. */
const optional = {
  name: 'a',
  note: 'a',
  tags: ['a'],
  labels: ['a'],
  personality: { A: 'a' },
  search: 'a',
  cursor: 'a',
}
const operations = new Map(readOperations().operations.map((operation) => [operation.id, operation]))
const allTexts = Object.values(hostileTexts)
let turn = 0

/** The sample, and of the fields above those that the procedure knows. */
function wholeInput(path: string): object {
  const { body, query = {} } = operations.get(path) ?? {}
  const known = { ...body?.properties, ...query }
  const more = Object.entries(optional).filter(([name]) => name in known)
  return { ...Object.fromEntries(more), ...inputOfSample(path, tenant, samples[path]?.ownId?.(tenant)) }
}

describe.each(procedurePolicies().filter(({ type }) => type !== 'subscription'))('$path', ({ path, type }) => {
  test('accepts hostile texts as texts or explains the refusal', async () => {
    const broken = hostileTexts['a zero byte'] + hostileTexts['half a character']
    for (const bad of poisoned(wholeInput(path) as Json, broken)) {
      const answer = await callProcedure(api, { path, type, input: bad, cookie })
      expect([answer.status, answer.code, answer.text]).toEqual([400, 'invalid', answer.text])
    }
    // The others in turns: each procedure some of them, together all.
    const texts = [0, 1].map(() => allTexts[turn++ % allTexts.length] ?? '')
    for (const bad of texts.flatMap((text) => [...poisoned(wholeInput(path) as Json, text)])) {
      // The maximum length of an address.
      if (type === 'query' && JSON.stringify(bad).length > 8_000) continue
      const answer = await callProcedure(api, { path, type, input: bad, cookie })
      expect([answer.status < 500, bad, answer.text]).toEqual([true, bad, answer.text])
    }
  })
})

test('a body that is no UTF-8 is refused or read, and breaks nothing', async () => {
  const body = Buffer.concat([Buffer.from('{"name":"'), Buffer.from([0xff, 0xc0, 0x80]), Buffer.from('"}')])
  const answer = await fetch(`${api.url}/api/v1/farms`, {
    method: 'POST',
    headers: { cookie, 'content-type': 'application/json' },
    body,
  })
  expect(answer.status).toBeLessThan(500)
})

/** The inputs of sign-in's routes. */
const authFields = ['email', 'password', 'name', 'token', 'code', 'provider', 'newPassword', 'newEmail']
const addressFields = ['callbackURL', 'redirectTo', 'errorCallbackURL', 'newUserCallbackURL']

describe('sign-in', () => {
  test('answers hostile texts, and writes nothing of them to the terminal', async () => {
    const consoles = (['log', 'warn', 'error'] as const).map((name) => vi.spyOn(console, name))
    for (const { method, path } of authRoutes()) {
      for (const text of [hostileTexts["a terminal's sequences"], hostileTexts['a line of a log']]) {
        const fields = Object.fromEntries([...authFields, ...addressFields].map((name) => [name, text]))
        const search = method === 'GET' ? `?${new URLSearchParams(fields)}` : ''
        const answer = await fetch(`${api.url}${path}${search}`, {
          method,
          redirect: 'manual',
          headers: { 'content-type': 'application/json', origin: testOrigin },
          ...(method === 'GET' ? {} : { body: JSON.stringify(fields) }),
        })
        expect([path, answer.status < 500]).toEqual([path, true])
      }
    }
    for (const spy of consoles) expect(spy.mock.calls).toEqual([])
    vi.restoreAllMocks()
    expect(logged).toContain('sign-in: Invalid')
  })
})

describe('an edge', () => {
  test.each(Object.entries(hostileTexts))('cannot call itself %s beyond printable ASCII', async (_, hostname) => {
    const edge = new EdgeClient(api.url)
    const { status } = await edge.enrol('no such token', { hostname, agentVersion: hostname })
    expect(printableTexts.includes(hostname) ? [403] : [400, 413]).toContain(status)
  })
})

test('every query and operation shows what was planted as JSON, and nothing breaks', async () => {
  let shown = ''
  for (const { path, type } of procedurePolicies().filter((one) => one.type === 'query')) {
    const answer = await callProcedure(api, { path, type, input: listInput(path), cookie: plantedCookie })
    expect([path, answer.status < 500]).toEqual([path, true])
    shown += answer.text
  }
  for (const text of printableTexts) expect(shown).toContain(JSON.stringify(text).slice(1, -1))
  for (const operation of readOperations().operations.filter(({ method }) => method === 'GET')) {
    const request = requestOf(operation, listInput(operation.id))
    const { status, headers } = await callRest(api, request.path, {
      ...request.call,
      headers: { cookie: plantedCookie },
    })
    expect([operation.id, status < 500]).toEqual([operation.id, true])
    expect(headers.get('content-type')).toMatch(/^application\/(problem\+)?json/)
  }
})

/** The planted tenant's own ids. */
function listInput(path: string): object | undefined {
  const { idName } = samples[path] ?? {}
  const { farmId, siteId, collectionId, vdiskId, versionId, deviceIds } = planted
  const ids: Record<string, string | undefined> = {
    farmId,
    siteId,
    collectionId,
    vdiskId,
    versionId,
    deviceId: deviceIds[0],
  }
  if (idName) return { ...inputOfSample(path, tenant, ids[idName] ?? planted.farmId) }
  return inputOfSample(path, tenant) && { limit: 100 }
}

const formula = /^[=+\-@\t\r\n＝＋－＠]/

const download = async (path: string) =>
  (await fetch(`${api.url}/api/v1${path}`, { headers: { cookie: plantedCookie } })).text()

describe('CSV', () => {
  test('of devices has no cell that a spreadsheet runs, and comes back without a change', async () => {
    const csv = await download('/device-exports')
    const cells = (parse(csv, { bom: true }) as string[][]).flat()
    expect(cells.filter((cell) => formula.test(cell))).toEqual([])
    expect(cells).toContain(`'${hostileTexts['a formula']}`)
    const input = { siteId: planted.siteId, csv, preview: true }
    const plan = await mutate<object>(api, plantedCookie, 'device.importCsv', input)
    expect(plan).toMatchObject({ createdCount: 0, changedCount: 0, refusedCount: 0, unchangedCount: 5 })
  })

  test('of the audit log has none either, and one line for each entry', async () => {
    const rows = parse(await download('/audit-exports'), { bom: true }) as string[][]
    expect(rows.flat().filter((cell) => formula.test(cell))).toEqual([])
    const where = { organizationId: planted.organizationId }
    expect(rows).toHaveLength((await api.db.auditEntry.count({ where })) + 1)
  })
})

test('the log is one line of JSON each, without a character that a terminal would act on', () => {
  const lines = logged.trimEnd().split('\n')
  expect(lines.length).toBeGreaterThan(50)
  for (const line of lines) expect(JSON.parse(line)).toMatchObject({ level: expect.any(Number) })
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
  expect(logged.match(/[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g) ?? []).toEqual([])
  expect(lines.filter((line) => (JSON.parse(line) as { msg?: string }).msg === 'hacked')).toEqual([])
})
