import { randomBytes, randomUUID } from 'node:crypto'
import { PassThrough } from 'node:stream'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { authRoutes } from '../../../test/auth-routes.ts'
import { EdgeClient } from '../../../test/edge-client.ts'
import { ask, askByRest, inTurns, type Procedure } from '../../../test/matrix/ask.ts'
import { apiKey, person } from '../../../test/matrix/callers.ts'
import { type OidcProvider, startOidcProvider } from '../../../test/oidc-provider.ts'
import { type PlantedSecrets, plantSecrets } from '../../../test/plant-secrets.ts'
import { openPostOffice, type PostOffice } from '../../../test/post-office.ts'
import { inputOfSample, samples } from '../../../test/procedure-samples.ts'
import { callRest } from '../../../test/rest-client.ts'
import { startTestApi, type TestApi } from '../../../test/test-api.ts'
import { testOrigin } from '../../../test/test-constants.ts'
import { signIn, signInAsPlatformOperator } from '../../../test/test-tenant.ts'
import { startTraceCollector, type TraceCollector } from '../../../test/trace-collector.ts'
import { createMailer, defaultSender } from '../../mail/mailer.ts'
import { roles } from '../../rules/permissions.ts'
import { tellAll } from '../../rules/telemetry.ts'
import { defaultTenancy } from '../../rules/tenancy.ts'
import { ApiMetrics } from '../observe/api-metrics.ts'
import { startTracing, type Tracing } from '../observe/tracing.ts'
import { procedurePolicies } from '../trpc/policies.ts'

// Checks that no answer, by tRPC or REST, contains any secret.

const startMsMax = 120_000
const clientSecret = randomBytes(24).toString('hex')
let api: TestApi
let planted: PlantedSecrets
let postOffice: PostOffice
let provider: OidcProvider
let collector: TraceCollector
let tracing: Tracing
let metrics: ApiMetrics
const log = new PassThrough()
let logged = ''
log.on('data', (chunk: Buffer) => {
  logged += chunk.toString('utf8')
})

beforeAll(async () => {
  postOffice = await openPostOffice(randomBytes(12).toString('hex'))
  const client = { clientId: 'bootfarm', clientSecret }
  provider = await startOidcProvider({ ...client, webUrl: testOrigin })
  collector = await startTraceCollector()
  tracing = startTracing({ endpoint: collector.url, serviceName: 'bootfarm-api', version: '1' })
  metrics = new ApiMetrics({ version: '1', pool: () => ({ total: 0, idle: 0, waiting: 0 }) })
  const say = (line: string) => log.write(`${JSON.stringify({ level: 30, msg: line })}\n`)
  const sendMail = createMailer({ smtpUrl: postOffice.url, from: defaultSender, log: say })
  api = await startTestApi({
    log,
    onQuery: (ended) => tracing.queryEnded(ended),
    people: {
      tenancy: { ...defaultTenancy, isSelfService: true },
      oidc: { ...client, issuer: provider.issuer, name: 'A provider', rules: [] },
    },
    change: (options) => ({
      ...options,
      telemetry: tellAll([metrics, tracing]),
      tracer: tracing,
      sendMail,
    }),
  })
  planted = await plantSecrets(api, postOffice)
  Object.assign(planted.secrets, {
    "client secret of the provider's": clientSecret,
    "mail server's password": postOffice.password,
  })
}, startMsMax)
afterAll(async () => {
  await api.close()
  await tracing.close()
  await collector.close()
  provider.close()
  await postOffice.close()
})

/** Those that an answer may not hold: one's own cookie and key are known to who sends them, and still not repeated. */
function toldIn(text: string, where: string): string[] {
  const found = Object.entries(planted.secrets).filter(([, secret]) => text.includes(secret))
  return found.map(([what]) => `the ${what} is in ${where}`)
}

const requireNone = (text: string, where: string) => expect(toldIn(text, where)).toEqual([])

const procedures = procedurePolicies()
const inputOf = (path: string) => inputOfSample(path, planted.tenant, samples[path]?.ownId?.(planted.tenant))

/** Uses REST if there is an operation; those that end the caller's own membership or access come last. */
async function askEverything(who: string, headers: Record<string, string>): Promise<string[]> {
  const told: string[] = []
  const look = async (procedure: Procedure) => {
    const question = { input: inputOf(procedure.path), headers }
    const { text } = (await askByRest(api, procedure, question)) ?? (await ask(api, procedure, question))
    told.push(...toldIn(text, `${procedure.path} for ${who}`))
  }
  const isLast = ({ path }: Procedure) => samples[path]?.isLast || path.startsWith('organization.')
  await inTurns(
    procedures.filter((one) => !isLast(one)),
    look,
  )
  for (const procedure of procedures.filter(isLast)) await look(procedure)
  return told
}

test('every planted secret is one', () => {
  expect(Object.keys(planted.secrets).length).toBeGreaterThan(25)
  const short = Object.entries(planted.secrets).filter(([, secret]) => secret.length < 10)
  expect(short).toEqual([])
})

test('stored secrets are hashed, or readable only with the API’s secret, except these', async () => {
  const tables = await api.db.$queryRaw<{ name: string }[]>`
    select relname as name from pg_class
    where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition order by 1`
  const found = new Set<string>()
  for (const { name } of tables) {
    const [row] = await api.db.$queryRawUnsafe<{ text: string }[]>(
      `select coalesce(string_agg(to_jsonb(t)::text, ' '), '') as text from "${name}" t`,
    )
    for (const told of toldIn(row?.text ?? '', name)) found.add(told)
  }
  expect([...found].sort()).toEqual(['the hash of the password is in account', 'the session token is in session'])
})

describe('no answer of any procedure or operation holds one', () => {
  test.each(roles)('for the role %s', async (role) => {
    const { headers } = await person(api, planted.tenant.organizationId, { role })
    expect(await askEverything(role, headers)).toEqual([])
  })

  test.each(['owner', 'viewer'] as const)('for an API key of the role %s', async (role) => {
    const { headers } = await apiKey(api, planted.tenant.organizationId, role)
    expect(await askEverything(`a key of the role ${role}`, headers)).toEqual([])
  })

  test("for the platform's operator, and for nobody", async () => {
    expect(await askEverything('the operator', { cookie: await signInAsPlatformOperator(api) })).toEqual([])
    expect(await askEverything('nobody', {})).toEqual([])
  })

  test('for the owner whose secrets they are, with a cookie and with the key', async () => {
    const { cookie, secrets } = planted
    const queries = procedures.filter(({ type }) => type !== 'mutation')
    for (const headers of [{ cookie }, { authorization: `Bearer ${secrets['API key']}` }])
      await inTurns(queries, async (procedure) => {
        const input = inputOf(procedure.path)
        requireNone((await ask(api, procedure, { input, headers })).text, procedure.path)
        const byRest = await askByRest(api, procedure, { input, headers })
        requireNone(byRest?.text ?? '', procedure.path)
      })
  })
})

/** Calls each route of better-auth with these fields as a signed-in person. */
async function askSignIn(fields: Record<string, string>, limit = 600): Promise<void> {
  for (const { method, path } of authRoutes()) {
    // It would end the session.
    if (path === '/api/auth/sign-out') continue
    const search = method === 'GET' ? `?${new URLSearchParams(fields)}` : ''
    const answer = await fetch(`${api.url}${path}${search}`, {
      method,
      redirect: 'manual',
      headers: { cookie: planted.cookie, origin: testOrigin, 'content-type': 'application/json' },
      ...(method === 'GET' ? {} : { body: JSON.stringify(fields) }),
    })
    expect([path, answer.status < limit]).toEqual([path, true])
    const { location = '', ...headers } = Object.fromEntries(answer.headers)
    requireNone(await answer.text(), path)
    // Cookies are what the session's token is for, and a link leads on with the token that it brought.
    if (method !== 'GET' && !path.includes('/callback/')) requireNone(location, path)
    requireNone(JSON.stringify({ ...headers, 'set-cookie': '' }), path)
  }
}

describe('sign-in', () => {
  test('answers without a session’s token, whose place is the cookie', async () => {
    const { headers } = await person(api, planted.tenant.organizationId, { role: 'viewer' })
    await askSignIn({})
    const answer = await fetch(`${api.url}/api/auth/get-session`, { headers })
    expect(await answer.json()).toMatchObject({ session: { userId: expect.any(String) } })
  })

  test('repeats none that came with the request', async () => {
    const { password = '', 'invitation token': token = '', 'TOTP secret': code = '' } = planted.secrets
    await askSignIn({ email: 'nobody@example.test', password, newPassword: 'short', token, code })
  })
})

test('no refusal repeats a secret that came with the request', async () => {
  const { cookie, secrets } = planted
  const { password = '', 'API key': key = '', 'session token': session = '' } = secrets
  const brought = [
    { authorization: `Bearer ${key}x` },
    { authorization: `Basic ${password}` },
    { cookie: `better-auth.session_token=${session}.wrong` },
  ]
  for (const headers of brought)
    for (const path of ['/devices', '/devices?limit=x', `/devices/${randomUUID()}`, '/nothing']) {
      const { status, text } = await callRest(api, path, { headers })
      expect(status).toBeGreaterThanOrEqual(400)
      requireNone(text, path)
    }
  const bodies = [
    { body: { name: 'x', url: `https://user:${password}@hooks.example/`, events: ['boot.failed'] } },
    { rawBody: `{"secret":"${password}"` },
  ]
  for (const body of bodies) {
    const { status, text } = await callRest(api, '/webhooks', {
      method: 'POST',
      ...body,
      headers: { cookie },
    })
    expect(status).toBeGreaterThanOrEqual(400)
    requireNone(text, 'a refused webhook')
  }
  for (const name of ['invitation.accept', 'setup.complete', 'signUp.complete'])
    for (const token of [secrets['owner link'], secrets['join token'], password]) {
      const procedure = procedures.find(({ path }) => path === name) as Procedure
      const input = { ...inputOf(name), token: `${token}x`, password: 'short' }
      requireNone((await ask(api, procedure, { input, headers: { cookie } })).text, name)
    }
  const { status, body } = await new EdgeClient(api.url).enrol(`${secrets['join token']}x`)
  expect(status).toBe(403)
  requireNone(JSON.stringify(body), 'a refused enrolment')
  const wrong = await signIn(api, { email: `${randomUUID()}@example.test`, password })
  requireNone(await wrong.text(), 'a refused sign-in')
})

test('an error that nobody foresaw tells none, when the API may read and write nothing', async () => {
  const { cookie, secrets } = planted
  // The caller is still known.
  const kept = ['user', 'session', 'membership', 'role_grant', 'api_key', 'organization', 'rate_limit']
  const tables = await api.db.$queryRaw<{ name: string }[]>`
    select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')`
  for (const { name } of tables)
    if (!kept.includes(name)) await api.db.$executeRawUnsafe(`revoke all on "${name}" from bootfarm_api`)
  const statuses = new Set<number>()
  await inTurns(
    procedures.filter(({ path }) => !path.startsWith('session.')),
    async (procedure) => {
      const input = {
        ...inputOf(procedure.path),
        token: secrets['invitation token'],
        password: secrets.password,
      }
      const answer = await ask(api, procedure, { input, headers: { cookie } })
      statuses.add(answer.status)
      requireNone(answer.text, procedure.path)
    },
  )
  expect(statuses).toContain(500)
  const { password = '', 'token of a new password': token = '' } = secrets
  for (const name of kept) await api.db.$executeRawUnsafe(`revoke all on "${name}" from bootfarm_api`)
  await askSignIn({ email: 'nobody@example.test', password, newPassword: password, token, name: 'x' })
  for (const headers of [{ cookie }, { authorization: `Bearer ${secrets['API key']}` }]) {
    const { status, text } = await callRest(api, '/devices', { headers })
    expect(status).toBe(500)
    requireNone(text, 'an answer without any table')
  }
})

test('the log has none of them, at its most talkative', () => {
  for (const text of ['request refused', 'permission denied']) expect(logged.includes(text)).toBe(true)
  requireNone(logged, 'the log')
})

test('neither has the audit log, any trace, or any metric', async () => {
  const entries = await api.db.auditEntry.findMany()
  expect(entries.length).toBeGreaterThan(50)
  requireNone(JSON.stringify(entries), 'the audit log')
  await tracing.flush()
  expect(collector.spans.length).toBeGreaterThan(500)
  requireNone(JSON.stringify(collector.spans), 'a trace')
  const told = await metrics.registry.metrics()
  expect(told).toContain('bootfarm_procedure_errors_total')
  requireNone(told, 'a metric')
})
