import { opened } from '../src/secrets/kept-secrets.ts'
import { createSetupLink } from '../src/session/setup-link.ts'
import { AuthClient } from './auth-client.ts'
import type { PostOffice } from './post-office.ts'
import { callRest } from './rest-client.ts'
import type { SampleTenant } from './sample.ts'
import { createSampleTenant } from './sample-tenant.ts'
import type { TestApi } from './test-api.ts'
import { callProcedure } from './test-client.ts'
import { testOrigin, testSecret } from './test-constants.ts'
import { createPerson, makeJoinToken } from './test-tenant.ts'

/** By what each is. */
export type Secrets = Record<string, string>

export interface PlantedSecrets {
  tenant: SampleTenant
  /** Cookie of the owner whose secrets they are. */
  cookie: string
  secrets: Secrets
}

const mailLimitMs = 60_000

/** One of each that there is, whose value is known here. The API has no account yet, and mails by this office. */
export async function plantSecrets(api: TestApi, { texts }: PostOffice): Promise<PlantedSecrets> {
  const context = { db: api.db, clock: api.clock.read }
  const setupLink = await createSetupLink(context, testOrigin)
  const tenant = await createSampleTenant(api, 'own')
  const person = await createPerson(api, tenant.organizationId, 'owner')
  const client = new AuthClient(api)
  await client.post('/sign-in/email', person)
  const { cookie } = client
  const mutate = async (path: string, input: object) => {
    const { status, text } = await callProcedure(api, { path, type: 'mutation', input, cookie })
    if (status !== 200) throw new Error(`${path} answered ${status}: ${text}`)
  }
  const post = async (path: string, body: object) => {
    const { text } = await callRest(api, path, { method: 'POST', body, headers: { cookie } })
    return (JSON.parse(text) as { secret: string }).secret
  }
  const twoFactor = await client.post('/two-factor/enable', { password: person.password })
  const backupCodes = twoFactor.body.backupCodes as string[]
  await client.post('/request-password-reset', { email: person.email })
  await client.post('/change-email', { newEmail: `new-${person.email}` })
  await mutate('invitation.create', { email: 'guest@example.test', role: 'viewer', scope: {} })
  await mutate('signUp.ask', { email: 'new@example.test' })
  const mailed = (link: RegExp) => waitForLink(texts, link)
  const webhook = { name: 'Chat', url: 'https://hooks.example/in', events: ['boot.failed'] }
  const session = decodeURIComponent(/session_token=([^;]+)/.exec(cookie)?.[1] ?? '')
  const webhookSecret = (await post('/webhooks', webhook)).replace('whsec_', '')
  const secrets: Secrets = {
    password: person.password,
    'session token': session.split('.')[0] ?? '',
    "session cookie's signature": session.split('.')[1] ?? '',
    'TOTP secret': new URL(String(twoFactor.body.totpURI)).searchParams.get('secret') ?? '',
    ...Object.fromEntries(backupCodes.map((code, index) => [`backup code ${index + 1}`, code])),
    'token of a new password': await mailed(/reset-password\/([\w-]+)/),
    'token of a new address': await mailed(/verify-email\?token=([\w.-]+)/),
    'invitation token': await mailed(/invitation\/([\w-]+)/),
    'sign-up token': await mailed(/sign-up\/([\w-]+)/),
    'owner link': setupLink?.split('/').at(-1) ?? '',
    'API key': await post('/api-keys', { name: 'A script', role: 'owner' }),
    'webhook secret': webhookSecret,
    'webhook secret in hex': Buffer.from(webhookSecret, 'base64').toString('hex'),
    'join token': await makeJoinToken(api, tenant),
    "API's own secret": testSecret,
  }
  return { tenant, cookie, secrets: { ...secrets, ...(await storedSecrets(api, tenant, person.email)) } }
}

/** Returns the end of a link in a mail; mails are sent while their requests are answered, or soon after. */
async function waitForLink(texts: string[], link: RegExp): Promise<string> {
  const deadline = performance.now() + mailLimitMs
  for (;;) {
    const found = texts.map((text) => link.exec(text)?.[1]).find(Boolean)
    if (found) return found
    if (performance.now() > deadline) throw new Error(`no mail with ${link}:\n${texts.join('\n')}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/** Returns the stored secrets that no answer may contain. */
async function storedSecrets(api: TestApi, { organizationId }: SampleTenant, email: string): Promise<Secrets> {
  const { id, seed: sealed } = await api.db.signingKey.findFirstOrThrow({
    where: { organizationId },
    select: { id: true, seed: true },
  })
  const seed = opened({ kind: 'signing_key', organizationId, id }, sealed)
  const { password } = await api.db.account.findFirstOrThrow({ where: { user: { email } } })
  const passwordOf = (url: string) => decodeURIComponent(new URL(url).password)
  return {
    "signing key's seed": Buffer.from(seed).toString('base64'),
    "signing key's seed in hex": Buffer.from(seed).toString('hex'),
    "signing key's sealed seed": Buffer.from(sealed).toString('base64'),
    'hash of the password': password ?? '',
    "database's address": api.serverDatabaseUrl,
    "password of the API's database role": passwordOf(api.serverDatabaseUrl),
    "password of the database's owner": passwordOf(api.databaseUrl),
  }
}
