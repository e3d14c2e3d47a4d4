import { randomUUID } from 'node:crypto'
import { PassThrough } from 'node:stream'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { inputOfSample, type SampleTenant, samples } from '../../test/procedure-samples.ts'
import { callRest, requestOf } from '../../test/rest-client.ts'
import { createSampleTenant } from '../../test/sample-tenant.ts'
import { startTestApi, type TestApi } from '../../test/test-api.ts'
import { callProcedure } from '../../test/test-client.ts'
import { createPerson, makeJoinToken, signIn } from '../../test/test-tenant.ts'
import { procedurePolicies } from '../trpc/policies.ts'
import { readOperations } from './operations.ts'

let api: TestApi
let tenant: SampleTenant
let cookie: string
/** By what it is. */
const secrets: Record<string, string> = {}
const log = new PassThrough()
let logged = ''
log.on('data', (chunk: Buffer) => {
  logged += chunk.toString('utf8')
})

beforeAll(async () => {
  api = await startTestApi({ log })
  tenant = await createSampleTenant(api, 'own')
  const person = await createPerson(api, tenant.organizationId, 'owner')
  const answer = await signIn(api, person)
  cookie = answer.headers
    .getSetCookie()
    .map((one) => one.split(';')[0])
    .join('; ')
  await plantSecrets(person)
})
afterAll(() => api.close())

/** One of each that there is, whose value is known here. */
async function plantSecrets(person: { email: string; password: string }): Promise<void> {
  const post = async (path: string, body: object) => {
    const { text } = await callRest(api, path, { method: 'POST', body, headers: { cookie } })
    return JSON.parse(text) as { secret: string }
  }
  secrets.password = person.password
  secrets['session token'] = decodeURIComponent(/session_token=([^;]+)/.exec(cookie)?.[1] ?? '')
  secrets['API key'] = (await post('/api-keys', { name: 'A script', role: 'owner' })).secret
  const webhook = { name: 'Chat', url: 'https://hooks.example/in', events: ['boot.failed'] }
  secrets['webhook secret'] = (await post('/webhooks', webhook)).secret.replace('whsec_', '')
  secrets['join token'] = await makeJoinToken(api, tenant)
  const { organizationId } = tenant
  const { seed } = await api.db.signingKey.findFirstOrThrow({
    where: { organizationId },
    select: { seed: true },
  })
  secrets["signing key's seed"] = Buffer.from(seed).toString('base64')
  secrets["signing key's seed in hex"] = Buffer.from(seed).toString('hex')
  const account = await api.db.account.findFirstOrThrow({
    where: { user: { email: person.email } },
    select: { password: true },
  })
  secrets['hash of the password'] = account.password ?? ''
}

function requireNone(text: string, where: string): void {
  const told = Object.entries(secrets).filter(([, secret]) => text.includes(secret))
  expect(told.map(([what]) => `the ${what} is in ${where}`)).toEqual([])
}

test('every planted secret is one', () => {
  for (const secret of Object.values(secrets)) expect(secret.length).toBeGreaterThan(20)
})

test('no answer of any procedure or operation holds a secret that was made before', async () => {
  for (const { path, type } of procedurePolicies().filter((one) => one.type !== 'mutation')) {
    const input = inputOfSample(path, tenant, samples[path]?.ownId?.(tenant))
    requireNone((await callProcedure(api, { path, type, input, cookie })).text, path)
  }
  for (const operation of readOperations().operations) {
    const { path, call } = requestOf(
      operation,
      inputOfSample(operation.id, tenant, samples[operation.id]?.ownId?.(tenant)),
    )
    requireNone((await callRest(api, path, { ...call, headers: { cookie } })).text, operation.id)
  }
})

test('no refusal repeats a secret that came with the request', async () => {
  const { password = '', 'API key': apiKey = '' } = secrets
  const authorization = `Bearer ${apiKey}x`
  const answers = [
    await callRest(api, '/devices', { headers: { authorization } }),
    await callRest(api, '/devices?limit=x', { headers: { authorization: `Bearer ${apiKey}` } }),
    await callRest(api, '/webhooks', {
      method: 'POST',
      body: { name: 'x', url: `https://user:${password}@hooks.example/`, events: ['boot.failed'] },
      headers: { cookie },
    }),
    await callRest(api, '/webhooks', {
      method: 'POST',
      rawBody: `{"secret":"${password}"`,
      headers: { cookie },
    }),
  ]
  for (const { status, text } of answers) {
    expect(status).toBeGreaterThanOrEqual(400)
    requireNone(text, 'a refusal')
  }
  const wrong = await signIn(api, { email: `${randomUUID()}@example.test`, password })
  requireNone(await wrong.text(), 'a refused sign-in')
})

test('the log has none of them, at its most talkative', () => {
  expect(logged).toContain('request refused')
  requireNone(logged, 'the log')
})

test('the audit log has none of them', async () => {
  requireNone(JSON.stringify(await api.db.auditEntry.findMany()), 'the audit log')
})
