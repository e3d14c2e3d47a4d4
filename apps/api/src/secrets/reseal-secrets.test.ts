import { randomBytes } from 'node:crypto'
import { publicKeyOf, verifyText } from '@bootfarm/proto/uplink-signature'
import { afterEach, expect, test } from 'vitest'
import { testSecret, testSecretsKey } from '../../test/test-constants.ts'
import { useTestSite } from '../../test/test-site.ts'
import { startReceiver } from '../../test/webhook/receiver.ts'
import { openedEdgeKey } from '../edge/edge-key.ts'
import { readSigningKeys } from '../organization/signing-keys.ts'
import { opened, setSecretKeys } from './kept-secrets.ts'
import { requireSecretKeys, resealSecrets } from './reseal-secrets.ts'
import { secretKeysFrom } from './secret-keys.ts'

const site = useTestSite('owner')
const newKey = () => randomBytes(32).toString('base64')
const used = new Set<string>()
const context = () => ({ db: site().api.serverDb, clock: site().api.clock.read })
const organizationId = () => site().tenant.organizationId

function use(...keys: string[]): void {
  for (const key of keys) used.add(key)
  setSecretKeys(secretKeysFrom(keys.join(' '), testSecret))
}

/** Back to the key with which all tests begin. */
afterEach(async () => {
  const first = secretKeysFrom(testSecretsKey, testSecret)
  setSecretKeys({ ...first, all: secretKeysFrom([testSecretsKey, ...used].join(' '), testSecret).all })
  await resealSecrets(context())
  setSecretKeys(first)
  await site().api.db.webhookEndpoint.deleteMany()
})

/** The key of a site's edges, made by the edge's first poll. */
async function openSiteKey(): Promise<string> {
  const row = await site().api.db.site.findFirstOrThrow({ where: { edgeKey: { not: null } } })
  return Buffer.from(
    openedEdgeKey({ organizationId: row.organizationId, siteId: row.id }, row.edgeKey ?? new Uint8Array()),
  ).toString('base64')
}

async function makeWebhook(): Promise<{ id: string; secret: string }> {
  const receiver = await startReceiver()
  await receiver.close()
  return site().mutate('webhook.create', { name: 'Chat', url: receiver.url, events: ['wave.done'] })
}

/** Throws where a secret does not open. */
async function openAll(webhookId: string) {
  const { newest } = await readSigningKeys(site().api.db, { organizationId: organizationId() })
  const isSigned = verifyText('text', newest.sign('text'), newest.publicKey)
  const row = await site().api.db.webhookEndpoint.findFirstOrThrow({ where: { id: webhookId } })
  const shown = [row.secret, row.previousSecret].map((one) => {
    const place = { kind: 'webhook', organizationId: organizationId(), id: webhookId } as const
    return one && `whsec_${Buffer.from(opened(place, one)).toString('base64')}`
  })
  return { isSigned, shown }
}

test('after a new key was added and all secrets were sealed with it, the former key is not needed', async () => {
  const [older, newer] = [newKey(), newKey()]
  use(older, testSecretsKey)
  const webhook = await makeWebhook()
  await site().enrolEdge()
  expect((await site().state()).siteEdges).toBeDefined()
  const siteKey = await openSiteKey()
  const rotated = await site().mutate<{ secret: string }>('webhook.rotateSecret', { webhookId: webhook.id })
  use(newer, older, testSecretsKey)
  expect(await resealSecrets(context())).toBeGreaterThanOrEqual(3)
  expect(await resealSecrets(context())).toBe(0)
  use(newer)
  expect(await openAll(webhook.id)).toEqual({ isSigned: true, shown: [rotated.secret, webhook.secret] })
  expect(await openSiteKey()).toBe(siteKey)
  use()
  await expect(openAll(webhook.id)).rejects.toThrow(/sealed with key [0-9a-f]{16}/)
})

test('secrets that an earlier release kept in clear are sealed', async () => {
  const { db } = site().api
  const webhook = await makeWebhook()
  const seed = Uint8Array.from(randomBytes(32))
  await db.signingKey.updateMany({
    where: { organizationId: organizationId() },
    data: { seed, publicKey: publicKeyOf(seed) },
  })
  const secret = Buffer.from(webhook.secret.replace('whsec_', ''), 'base64')
  await db.webhookEndpoint.updateMany({ where: { id: webhook.id }, data: { secret: Uint8Array.from(secret) } })
  const before = await openAll(webhook.id)
  expect(await resealSecrets(context())).toBe(2)
  const key = await db.signingKey.findFirstOrThrow({ where: { organizationId: organizationId() } })
  const endpoint = await db.webhookEndpoint.findFirstOrThrow({ where: { id: webhook.id } })
  expect(Buffer.from(key.seed).includes(Buffer.from(seed))).toBe(false)
  expect(Buffer.from(endpoint.secret).includes(secret)).toBe(false)
  expect(await openAll(webhook.id)).toEqual(before)
  expect(before).toEqual({ isSigned: true, shown: [webhook.secret, null] })
})

test('an API whose keys do not open what the database holds does not start', async () => {
  await requireSecretKeys(context())
  setSecretKeys(secretKeysFrom('', `${testSecret}, another`))
  await expect(requireSecretKeys(context())).rejects.toThrow(/restore the former BETTER_AUTH_SECRET/)
})
