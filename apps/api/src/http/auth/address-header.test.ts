import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestApi, type TestApi } from '../../../test/test-api.ts'
import { testOrigin } from '../../../test/test-constants.ts'
import { createPerson, createTenant } from '../../../test/test-tenant.ts'

/** A documentation address (RFC 5737), which belongs to nobody. */
const proxy = '198.51.100.7'
const caller = '203.0.113.9'
const mailsPerHourMax = 20
let api: TestApi
let sign: { email: string; password: string }

beforeAll(async () => {
  api = await startTestApi({ change: (options) => ({ ...options, trustedProxies: [`${proxy}/32`] }) })
  const { organizationId } = await createTenant(api, 'own')
  sign = await createPerson(api, organizationId, 'owner')
})
afterAll(() => api.close())

interface Sender {
  /** Address that opened the connection. */
  from: string
  headers?: Record<string, string>
}

const post = (path: string, payload: object, { from, headers = {} }: Sender) =>
  api.app.inject({
    method: 'POST',
    url: `/api/auth${path}`,
    payload,
    remoteAddress: from,
    headers: { origin: testOrigin, ...headers },
  })

/** Returns the address that the session of a sign-in shows. */
async function addressOf(sender: Sender): Promise<string | null> {
  expect((await post('/sign-in/email', sign, sender)).statusCode).toBe(200)
  const session = await api.db.session.findFirstOrThrow({
    orderBy: { id: 'desc' },
    select: { id: true, ipAddress: true },
  })
  const entry = await api.db.auditEntry.findFirstOrThrow({
    where: { action: 'account.signIn' },
    orderBy: { id: 'desc' },
    select: { address: true },
  })
  expect(entry.address).toBe(session.ipAddress)
  await api.db.session.delete({ where: { id: session.id } })
  return session.ipAddress
}

const forwarded = (value: string) => ({ 'x-forwarded-for': value })

test('the address of a caller comes from trusted proxies, and from no other sender', async () => {
  expect(await addressOf({ from: caller })).toBe(caller)
  // Headers of an untrusted sender have no effect.
  expect(await addressOf({ from: caller, headers: forwarded('192.0.2.1') })).toBe(caller)
  expect(await addressOf({ from: caller, headers: { 'x-bootfarm-address': '192.0.2.1' } })).toBe(caller)
  expect(await addressOf({ from: caller, headers: { 'x-real-ip': '192.0.2.1', forwarded: 'for=192.0.2.1' } })).toBe(
    caller,
  )
  // The dashboard's server, on this machine.
  expect(await addressOf({ from: '127.0.0.1', headers: forwarded(caller) })).toBe(caller)
  expect(await addressOf({ from: '::1', headers: forwarded(`192.0.2.1, ${caller}`) })).toBe(caller)
  // A proxy before it.
  expect(await addressOf({ from: '127.0.0.1', headers: forwarded(`192.0.2.1, ${caller}, ${proxy}`) })).toBe(caller)
  expect(await addressOf({ from: proxy, headers: forwarded(caller) })).toBe(caller)
})

test.each([
  ['straight to the API', (count: number) => ({ from: caller, headers: forwarded(`192.0.2.${count}`) })],
  [
    'through the dashboard’s server',
    (count: number) => ({ from: '127.0.0.1', headers: forwarded(`192.0.2.${count}, ${caller}`) }),
  ],
])('a forged header gets around no limit, %s', async (_how, senderOf) => {
  await api.db.rateLimit.deleteMany()
  const ask = async (sender: Sender) =>
    (await post('/request-password-reset', { email: 'nobody@example.test' }, sender)).statusCode
  for (let count = 1; count <= mailsPerHourMax; count += 1) expect(await ask(senderOf(count))).toBe(200)
  expect(await ask(senderOf(99))).toBe(429)
  // Behind the same proxy somebody else is somebody else.
  expect(await ask({ from: proxy, headers: forwarded('203.0.113.10') })).toBe(200)
})

test('whoever guesses from elsewhere keeps nobody out who has signed in from where they are', async () => {
  const attempt = async (from: string, password: string) =>
    (await post('/sign-in/email', { email: sign.email, password }, { from })).statusCode
  const forgetRates = () => api.db.rateLimit.deleteMany({ where: { key: { not: { startsWith: 'account:' } } } })
  const home = '203.0.113.77'
  expect(await attempt(home, sign.password)).toBe(200)
  const refusedAt = async (from: string) => {
    for (let count = 1; ; count++) if ((await attempt(from, 'guess number n')) === 429) return count
  }
  const refusals: number[] = []
  for (let last = 100; last < 107; last++) {
    refusals.push(await refusedAt(`203.0.113.${last}`))
    await forgetRates()
  }
  // Ten of each address, and sixty of all of them.
  expect(refusals).toEqual([11, 11, 11, 11, 11, 10, 1])
  expect(await attempt('203.0.113.200', sign.password)).toBe(429)
  expect(await attempt(home, sign.password)).toBe(200)
})
