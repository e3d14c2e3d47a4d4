import { createHmac, randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { bootReports, bootWith, EdgeClient } from '../../test/edge-client.ts'
import { callRest } from '../../test/rest-client.ts'
import { startTestApi, type TestApi, testWebhookTargets } from '../../test/test-api.ts'
import { createTenant, makeJoinToken, signInAs, type TestTenant } from '../../test/test-tenant.ts'
import { deliverDue } from '../../test/webhook/deliver-due.ts'
import { startNameServer } from '../../test/webhook/name-server.ts'
import { type Receiver, startReceiver } from '../../test/webhook/receiver.ts'
import { findSilentEdges, silentAfterMs } from '../edge/list-edges.ts'
import { noTelemetry } from '../rules/telemetry.ts'
import { backOffMs, failingMsMax, WebhookDeliveries } from './deliver-due.ts'
import { sendMessage } from './send-message.ts'

let api: TestApi
let receiver: Receiver
let tenant: TestTenant
let cookie: string

beforeAll(async () => {
  api = await startTestApi()
})
afterAll(() => api.close())
beforeEach(async () => {
  receiver = await startReceiver()
  tenant = await createTenant(api, randomUUID())
  cookie = await signInAs(api, tenant.organizationId, 'owner')
})
afterEach(async () => {
  await api.db.webhookEndpoint.deleteMany()
  await receiver.close()
})

interface Webhook {
  id: string
  secret: string
  revision: number
  enabled: boolean
  disabledReason: string | null
}
interface Delivery {
  id: string
  eventId: string
  state: string
  attempts: { status: number | null; error: string | null; answer: string | null }[]
}

const context = () => ({
  db: api.serverDb,
  clock: api.clock.read,
  webhookTargets: testWebhookTargets,
  telemetry: noTelemetry,
})
const deliver = () => deliverDue(context())

async function ask<T>(path: string, method = 'GET', body?: object): Promise<T> {
  const answer = await callRest(api, path, { method, body, headers: { cookie } })
  if (answer.status >= 300) throw new Error(`${answer.status} ${answer.text}`)
  return answer.body as T
}

const createWebhook = (events = ['boot.failed', 'edge.offline'], url = receiver.url) =>
  ask<Webhook>('/webhooks', 'POST', { name: 'Chat', url, events })

const deliveries = async ({ id }: Webhook) => (await ask<{ items: Delivery[] }>(`/webhooks/${id}/deliveries`)).items

async function enrolledEdge(): Promise<EdgeClient> {
  return EdgeClient.enrolled(api.url, await makeJoinToken(api, tenant))
}

const failed = { kind: 'failed', phase: 'nbp', cause: 'tftp_timeout', text: '<b>stuck</b>' } as const

function failedBoot() {
  return bootWith({ id: randomUUID(), mac: tenant.macs[0] ?? '', outcome: failed })
}

test('a failed boot is told once, however often it is reported, and what the device said is marked', async () => {
  await createWebhook()
  const edge = await enrolledEdge()
  const boot = failedBoot()
  await edge.reports(1, bootReports(1, [boot]))
  await edge.reports(2, bootReports(2, [{ ...boot, revision: boot.revision + 1 }]))
  await deliver()
  expect(receiver.received).toHaveLength(1)
  expect(JSON.parse(receiver.received[0]?.body ?? '')).toMatchObject({
    type: 'boot.failed',
    organizationId: tenant.organizationId,
    data: {
      bootId: boot.id,
      deviceName: 'pc-01',
      siteId: tenant.siteId,
      untrusted: { text: '<b>stuck</b>' },
    },
  })
})

test('an edge that falls silent is told once for each outage', async () => {
  const webhook = await createWebhook()
  const edge = await enrolledEdge()
  await edge.heartbeat()
  const look = async () => {
    await Promise.all([findSilentEdges(context()), findSilentEdges(context())])
    await deliver()
    return (await deliveries(webhook)).length
  }
  expect(await look()).toBe(0)
  api.clock.advance(silentAfterMs)
  expect(await look()).toBe(1)
  api.clock.advance(silentAfterMs)
  expect(await look()).toBe(1)
  await edge.heartbeat()
  expect(await look()).toBe(1)
  api.clock.advance(silentAfterMs)
  expect(await look()).toBe(2)
  expect(JSON.parse(receiver.received[0]?.body ?? '')).toMatchObject({
    type: 'edge.offline',
    data: { edgeId: edge.edgeId },
  })
})

/** Verifies a message like a receiver: https://www.standardwebhooks.com. */
function isSignedBy(secret: string, { headers, body }: Receiver['received'][number]): boolean {
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
  const text = `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${body}`
  const wanted = `v1,${createHmac('sha256', key).update(text).digest('base64')}`
  return String(headers['webhook-signature']).split(' ').includes(wanted)
}

test('messages are signed, by the secret before, too, for a day after it was changed', async () => {
  const { id, secret: first } = await createWebhook()
  const ping = async () => {
    await ask(`/webhooks/${id}/ping`, 'POST')
    await deliver()
    const message = receiver.received.at(-1)
    if (!message) throw new Error('nothing came')
    return message
  }
  expect(isSignedBy(first, await ping())).toBe(true)
  const { secret: second } = await ask<Webhook>(`/webhooks/${id}/rotate-secret`, 'POST')
  const overlapping = await ping()
  expect([isSignedBy(first, overlapping), isSignedBy(second, overlapping)]).toEqual([true, true])
  api.clock.advance(86_400_000)
  const later = await ping()
  expect([isSignedBy(first, later), isSignedBy(second, later)]).toEqual([false, true])
})

test('a message that is not taken is sent again, later and later, with the same id, until it is', async () => {
  const webhook = await createWebhook()
  await ask(`/webhooks/${webhook.id}/ping`, 'POST')
  receiver.answer.status = 500
  receiver.answer.body = 'down\u001b[31m for now'
  await deliver()
  await deliver()
  expect(receiver.received).toHaveLength(1)
  api.clock.advance(backOffMs[0] ?? 0)
  await deliver()
  receiver.answer.status = 204
  api.clock.advance(backOffMs[1] ?? 0)
  await deliver()
  expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
  expect(await deliveries(webhook)).toMatchObject([
    {
      state: 'delivered',
      attempts: [
        {
          status: 500,
          answer: 'down for now',
          error: 'The receiver answered 500. Only 200 to 299 counts as delivered.',
        },
        { status: 500 },
        { status: 204, error: null },
      ],
    },
  ])
})

test('several processes send a message once', async () => {
  const { id } = await createWebhook()
  for (let count = 0; count < 5; count++) await ask(`/webhooks/${id}/ping`, 'POST')
  await Promise.all([deliver(), deliver(), deliver()])
  expect(receiver.received).toHaveLength(5)
})

test('a delivery is sent once more when asked for', async () => {
  const webhook = await createWebhook()
  const { id } = await ask<Delivery>(`/webhooks/${webhook.id}/ping`, 'POST')
  await deliver()
  await ask(`/webhooks/${webhook.id}/deliveries/${id}/redeliver`, 'POST')
  await deliver()
  expect(receiver.received).toHaveLength(2)
  expect(await deliveries(webhook)).toMatchObject([{ id, state: 'delivered', attempts: [{}, {}] }])
})

test('a webhook that takes nothing for days is switched off, and says why', async () => {
  const webhook = await createWebhook()
  receiver.answer.status = 503
  for (let round = 0; round < 2; round++) {
    await ask(`/webhooks/${webhook.id}/ping`, 'POST')
    await deliver()
    api.clock.advance(failingMsMax)
  }
  await deliver()
  const off = await ask<Webhook>(`/webhooks/${webhook.id}`)
  expect(off).toMatchObject({ enabled: false, disabledReason: expect.stringContaining('The receiver answered 503') })
  expect((await deliveries(webhook)).every(({ state }) => state === 'failed')).toBe(true)
  const { name, url, events, revision } = off as unknown as Record<string, unknown>
  const on = await ask<Webhook>(`/webhooks/${webhook.id}`, 'PUT', {
    name,
    url,
    events,
    revision,
    enabled: true,
  })
  expect(on).toMatchObject({ enabled: true, disabledReason: null, failingSince: null })
})

test('a stale change is a conflict', async () => {
  const { id } = await createWebhook()
  const change = { name: 'New', url: receiver.url, events: ['boot.failed'], enabled: true, revision: 1 }
  await ask(`/webhooks/${id}`, 'PUT', change)
  await expect(ask(`/webhooks/${id}`, 'PUT', change)).rejects.toThrow('409')
})

test('a redirect is not followed, and a large answer is not read', async () => {
  receiver.answer.status = 302
  receiver.answer.headers = { location: receiver.url }
  receiver.answer.body = 'x'.repeat(1_000_000)
  const sent = await sendMessage({ url: receiver.url, headers: {}, body: '{}', policy: testWebhookTargets })
  expect(sent).toMatchObject({ status: 302, error: expect.stringContaining('Redirects are not followed') })
  expect(sent.answer?.length).toBeLessThanOrEqual(1_024)
  expect(receiver.received).toHaveLength(1)
})

test('a name is looked up when the message is sent; private and unknown ones get the same answer', async () => {
  const { port } = new URL(receiver.url)
  const names = await startNameServer({ 'inside.example': '127.0.0.1', 'printer.example': '10.1.2.3' })
  const sendTo = (url: string, allowedNetworks: string[]) =>
    sendMessage({ url, headers: {}, body: '{}', policy: { allowedNetworks, nameServers: names.servers } })
  try {
    const answers = await Promise.all(
      ['http://inside', 'https://inside', 'https://printer', 'https://unknown'].map((start) =>
        sendTo(`${start}.example:${port}/`, []),
      ),
    )
    expect(new Set(answers.map(({ error }) => error)).size).toBe(1)
    expect(answers[0]).toEqual({ status: null, answer: null, error: expect.stringContaining('private or special') })
    expect(receiver.received).toHaveLength(0)
    expect(await sendTo(`http://inside.example:${port}/in`, ['127.0.0.0/8'])).toMatchObject({ status: 200 })
  } finally {
    await names.close()
  }
})

test('a name server that does not answer ends the attempt', async () => {
  const names = await startNameServer({})
  const policy = { allowedNetworks: [], nameServers: names.servers }
  const sent = await sendMessage({ url: 'https://silent.example/', headers: {}, body: '{}', policy })
  await names.close()
  expect(sent).toEqual({ status: null, answer: null, error: expect.stringContaining('no name server answered') })
})

test('receivers that do not answer delay no other organization, and hold a few slots of their own', async () => {
  const slow = await startReceiver()
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  slow.answer.isHeld = released
  const errors: unknown[] = []
  const deliveries = new WebhookDeliveries(context(), (error) => errors.push(error))
  try {
    const endpoints = [
      await createWebhook(['boot.failed'], slow.url),
      await createWebhook(['boot.failed'], slow.url),
      await createWebhook(['boot.failed'], slow.url),
    ]
    for (const { id } of endpoints) for (let count = 0; count < 8; count++) await ask(`/webhooks/${id}/ping`, 'POST')
    deliveries.fill()
    await slow.until(4)
    tenant = await createTenant(api, randomUUID())
    cookie = await signInAs(api, tenant.organizationId, 'owner')
    const other = await createWebhook()
    await ask(`/webhooks/${other.id}/ping`, 'POST')
    deliveries.fill()
    await receiver.until(1)
    expect(slow.received).toHaveLength(4)
    const perEndpoint = slow.received.map(
      ({ body }) => (JSON.parse(body) as { data: { webhookId: string } }).data.webhookId,
    )
    for (const { id } of endpoints) expect(perEndpoint.filter((one) => one === id).length).toBeLessThanOrEqual(2)
  } finally {
    // Each slot is filled as soon as it is free, without a further look from outside.
    release()
    await deliveries.idle()
    await slow.close()
  }
  expect(slow.received).toHaveLength(24)
  expect(errors).toEqual([])
})
