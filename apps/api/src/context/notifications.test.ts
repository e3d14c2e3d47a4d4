import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { bootWith, EdgeClient } from '../../test/edge-client.ts'
import { startTestApi, type TestApi } from '../../test/test-api.ts'
import { mutate, openSubscription, query } from '../../test/test-client.ts'
import { TestSite } from '../../test/test-site.ts'

/** Two API processes behind a balancer: a request may reach either. */
let first: TestApi
let second: TestApi
let site: TestSite

beforeAll(async () => {
  first = await startTestApi()
  second = await startTestApi({ beside: first })
  site = await TestSite.open(first, 'own', 'operator')
})
afterAll(async () => {
  await second.close()
  await first.close()
})

/** The site's edge, at the other process. */
function edgeAtSecond(): EdgeClient {
  const edge = new EdgeClient(second.url, site.edge.seed)
  edge.edgeId = site.edge.edgeId
  return edge
}

test('a change through one wakes the long poll at the other', async () => {
  const edge = edgeAtSecond()
  const { body } = await edge.state('0.0', 0)
  const { counter } = JSON.parse(String(body?.payload)) as { counter: number }
  const listening = second.nextListener()
  const waiting = edge.state(`1.${counter}`, 25_000)
  await listening
  await mutate(first, site.cookie, 'device.bootAgain', { deviceId: site.deviceId })
  const answer = await waiting
  expect(answer.status).toBe(200)
  expect(JSON.parse(String(answer.body?.payload))).toMatchObject({ powerOns: [{ deviceId: site.deviceId }] })
})

test('boots reported to one reach the subscription at the other', async () => {
  const subscription = await openSubscription(second, { path: 'boot.onChange', cookie: site.cookie })
  expect((await subscription.next()).data).toEqual({ kind: 'synced' })
  const id = randomUUID()
  await site.report(bootWith({ id, mac: site.mac }))
  expect((await subscription.next()).data).toMatchObject({ kind: 'boot', boot: { id } })
  subscription.close()
})

test('who signed in at one is signed in at the other, and signed out at both', async () => {
  expect(await query(second, site.cookie, 'session.me')).toMatchObject({
    organization: { id: site.tenant.organizationId },
  })
  const headers = { cookie: site.cookie, origin: 'http://localhost:3000' }
  const answer = await fetch(`${second.url}/api/auth/sign-out`, { method: 'POST', headers })
  expect(answer.status).toBe(200)
  await expect(query(first, site.cookie, 'session.me')).rejects.toThrow(/unauthenticated/)
})
