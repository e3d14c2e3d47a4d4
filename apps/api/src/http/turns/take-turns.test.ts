import net from 'node:net'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { startTestApi, type TestApi } from '../../../test/test-api.ts'
import { openSubscription } from '../../../test/test-client.ts'
import { createTenant, signInAs } from '../../../test/test-tenant.ts'
import { Accounts } from './accounts.ts'
import { Rates } from './rates.ts'
import { Refusals } from './refusals.ts'
import { type TurnKind, Turns } from './turns.ts'

/** Writes down who took a turn, and lets a test hold one kind. */
class RecordedTurns extends Turns {
  taken: string[] = []
  heldKind: TurnKind | null = null
  #release = Promise.withResolvers<void>()

  override async take(name: string, kind: TurnKind) {
    this.taken.push(`${kind} ${name}`)
    const held = kind === this.heldKind ? this.#release.promise : undefined
    const end = await super.take(name, kind)
    await held
    return end
  }

  release(): void {
    this.#release.resolve()
    this.#release = Promise.withResolvers()
    this.heldKind = null
  }
}

/** Writes down as how many refusals each one counted. */
class CountedRates extends Rates {
  counts: number[] = []

  override take(name: string, count = 1): boolean {
    this.counts.push(count)
    return super.take(name, count)
  }
}

/** Refusals that wait are let go by the test. */
let released = Promise.withResolvers<void>()
released.resolve()
let heldCount = 0
const rates = new CountedRates({ burstMax: 1, perSecond: 0 })
const refusals = new Refusals({
  rates,
  wait: () => {
    heldCount += 1
    return released.promise
  },
})
const turns = new RecordedTurns()
let api: TestApi
let tenant: Awaited<ReturnType<typeof createTenant>>
let cookie: string

beforeAll(async () => {
  const governor = { turns, accounts: new Accounts(), refusals }
  api = await startTestApi({ change: (options) => ({ ...options, governor }) })
  tenant = await createTenant(api, 'own')
  cookie = await signInAs(api, tenant.organizationId, 'owner')
})
afterAll(() => api.close())
beforeEach(() => {
  turns.taken = []
})

const get = (path: string, headers: Record<string, string> = { cookie }) => fetch(`${api.url}${path}`, { headers })

test('the first request counts for the address, later ones for the organization', async () => {
  const address = 'request address 127.0.0.1'
  const own = `organization ${tenant.organizationId}`
  await get('/api/v1/session')
  expect(turns.taken).toEqual([address, `call ${own}`])
  turns.taken = []
  await get('/api/v1/session')
  expect(turns.taken).toEqual([`request ${own}`, `call ${own}`])
  turns.taken = []
  expect((await get('/api/v1/session', {})).status).toBe(401)
  expect(turns.taken).toEqual([address])
})

test('each procedure of a batch and each page of a file takes a turn', async () => {
  const own = `organization ${tenant.organizationId}`
  await get('/api/v1/session')
  turns.taken = []
  const inputs = encodeURIComponent(JSON.stringify({ 0: {}, 1: {}, 2: {} }))
  expect((await get(`/api/trpc/farm.list,site.list,farm.list?batch=1&input=${inputs}`)).status).toBe(200)
  expect(turns.taken).toEqual([`request ${own}`, ...Array.from({ length: 3 }, () => `call ${own}`)])
  turns.taken = []
  await (await get('/api/v1/device-exports?format=jsonl')).text()
  expect(turns.taken).toEqual([`request ${own}`, `call ${own}`])
})

test('supervisors and edges take no turns', async () => {
  await get('/readyz', {})
  await get('/edge/v1/state', {})
  expect(turns.taken).toEqual([])
})

test('a large body is read when its turn has come, and without a credential not at all', async () => {
  await get('/api/v1/session')
  turns.taken = []
  turns.heldKind = 'upload'
  const size = 400_000
  const { hostname, port } = new URL(api.url)
  const path = `/api/v1/sites/${tenant.siteId}/device-imports`
  const headOf = (credential: string) =>
    `POST ${path} HTTP/1.1\r\nhost: api\r\n${credential}content-type: application/json\r\ncontent-length: ${size}\r\n\r\n`
  const socket = net.connect({ host: hostname, port: Number(port) })
  let answer = ''
  socket.setEncoding('utf8').on('data', (text) => {
    answer += text
  })
  socket.write(headOf(`cookie: ${cookie}\r\n`))
  await expect.poll(() => turns.taken).toEqual([`upload organization ${tenant.organizationId}`])
  socket.write(JSON.stringify({ csv: 'name,mac\n', mode: 'check' }).padEnd(size, ' '))
  // The organization works meanwhile.
  expect((await get('/api/v1/session')).status).toBe(200)
  expect(answer).toBe('')
  turns.release()
  await expect.poll(() => answer).toMatch(/^HTTP\/1\.1 (200|400)/)
  socket.destroy()
  const stranger = net.connect({ host: hostname, port: Number(port) })
  let refused = ''
  stranger.setEncoding('utf8').on('data', (text) => {
    refused += text
  })
  stranger.write(headOf(''))
  released.resolve()
  await expect.poll(() => refused).toMatch(/^HTTP\/1\.1 401/)
  stranger.destroy()
})

test('a large body is parsed when its turn for that has come', async () => {
  // The refusal counts for the organization: another one than that of the other tests.
  const other = await createTenant(api, 'other')
  const headers = { cookie: await signInAs(api, other.organizationId, 'owner') }
  await get('/api/v1/session', headers)
  turns.taken = []
  turns.heldKind = 'large'
  let status = 0
  const answered = fetch(`${api.url}/api/v1/sites/${other.siteId}/device-imports`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: '{'.repeat(400_000),
  }).then((answer) => {
    status = answer.status
  })
  const account = `organization ${other.organizationId}`
  await expect.poll(() => turns.taken).toEqual([`upload ${account}`, `large ${account}`])
  // The organization works meanwhile.
  expect((await get('/api/v1/session', headers)).status).toBe(200)
  expect(status).toBe(0)
  turns.release()
  await answered
  expect(status).toBe(400)
})

test('each procedure of a batch that is refused counts as a refusal', async () => {
  released.resolve()
  rates.counts = []
  const inputs = Object.fromEntries([0, 1, 2].map((index) => [index, { token: 'x'.repeat(40) }]))
  const path = '/api/trpc/invitation.offer,invitation.offer,invitation.offer'
  const answer = await get(`${path}?batch=1&input=${encodeURIComponent(JSON.stringify(inputs))}`, {})
  expect([answer.status, rates.counts]).toEqual([404, [3]])
})

test('refusals of strangers are held once they are many, those of a known caller are not', async () => {
  // The one that is answered at once.
  await get('/api/v1/session', {})
  released = Promise.withResolvers()
  heldCount = 0
  let isAnswered = false
  const held = get('/api/v1/session', {}).then((answer) => {
    isAnswered = true
    return answer
  })
  await expect.poll(() => heldCount).toBe(1)
  for (let count = 0; count < 3; count++) expect((await get(`/api/v1/sites/${tenant.organizationId}`)).status).toBe(404)
  expect([isAnswered, heldCount]).toEqual([false, 1])
  released.resolve()
  expect((await held).status).toBe(401)
})

test('live updates beyond the limit are refused late', async () => {
  released = Promise.withResolvers()
  heldCount = 0
  const open = () => openSubscription(api, { path: 'boot.onChange', cookie })
  const pages = await Promise.all(Array.from({ length: 10 }, open))
  for (const page of pages) await page.next()
  await expect((await open()).next()).rejects.toThrow('rate_limited')
  const refused = expect((await open()).next()).rejects.toThrow('rate_limited')
  await expect.poll(() => heldCount).toBe(1)
  released.resolve()
  await refused
  for (const page of pages) page.close()
})
