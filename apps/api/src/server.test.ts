import { randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { createDb } from '@bootfarm/db'
import { startEmbeddedPostgres } from '@bootfarm/db/embedded'
import { migrate } from '@bootfarm/db/migrate'
import { freePort, makeReachableFolder } from '@bootfarm/db/testing'
import { expect, test } from 'vitest'
import { bootReports, bootWith, EdgeClient } from '../test/edge-client.ts'
import type { TestApi } from '../test/test-api.ts'
import { createTenant, makeJoinToken } from '../test/test-tenant.ts'
import { defaultBootRetention } from './boot/boot-retention.ts'
import { openNotifications } from './context/notifications.ts'
import { systemClock } from './rules/clock.ts'
import { createServer } from './server.ts'

/** A database server of this test's own, for it is killed. */
async function startApiWithPostgres() {
  const folder = makeReachableFolder()
  const postgres = await startEmbeddedPostgres({ dir: path.join(folder, 'cluster'), port: await freePort() })
  const url = postgres.url('bootfarm')
  const apiUrl = postgres.apiUrl('bootfarm')
  await migrate(url, { apiUrl })
  const db = createDb(url)
  const serverDb = createDb(apiUrl)
  const notifications = await openNotifications(apiUrl)
  const secret = 'a secret of at least 32 characters'
  const webUrl = 'http://localhost:3000'
  const app = await createServer({
    db: serverDb,
    notifications,
    clock: systemClock,
    webUrl,
    secret,
    consolesDirectory: null,
    bootRetention: defaultBootRetention,
    installation: { directory: null, publicKey: null, url: webUrl },
    logLevel: 'silent',
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  return {
    postgres,
    db,
    notifications,
    url: `http://127.0.0.1:${port}`,
    async close() {
      await app.close()
      await notifications.close()
      await serverDb.$disconnect()
      await db.$disconnect()
      await postgres.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

test('after kill -9 of PostgreSQL no acknowledged report is lost, and the API recovers', async () => {
  const api = await startApiWithPostgres()
  try {
    const parts = { db: api.db, clock: { read: systemClock } } as unknown as TestApi
    const tenant = await createTenant(parts, 'own')
    const edge = await EdgeClient.enrolled(api.url, await makeJoinToken(parts, tenant))
    const boots = [1, 2, 3].map(() => bootWith({ id: randomUUID(), mac: tenant.macs[0] ?? '' }))
    expect((await edge.reports(1, bootReports(1, boots.slice(0, 2)))).status).toBe(200)
    const recovered = new Promise<void>((resolve) => {
      api.notifications.subscribe('anything', resolve)
    })
    process.kill(api.postgres.pid, 'SIGKILL')
    await recovered
    expect((await fetch(`${api.url}/readyz`)).status).toBe(200)
    // The edge sends again what it does not know to be applied.
    const answer = await edge.reports(2, bootReports(2, boots.slice(1)))
    expect(answer).toEqual({ status: 200, body: { bootEpoch: 1, ackedSeq: 3 } })
    expect(await api.db.boot.count()).toBe(3)
  } finally {
    await api.close()
  }
})

test('while PostgreSQL is away the API says `unavailable`, without a word about why', async () => {
  const api = await startApiWithPostgres()
  try {
    await api.postgres.stop()
    expect((await fetch(`${api.url}/healthz`)).status).toBe(200)
    const ready = await fetch(`${api.url}/readyz`)
    expect([ready.status, ready.headers.get('content-type'), await ready.json()]).toMatchObject([
      503,
      expect.stringContaining('application/problem+json'),
      {
        code: 'unavailable',
        notReady: [{ part: 'database' }, { part: 'migrations' }, { part: 'notifications' }],
      },
    ])
    const edge = new EdgeClient(api.url)
    edge.edgeId = randomUUID()
    expect(await edge.heartbeat()).toMatchObject({ status: 503, body: { code: 'unavailable' } })
    const procedure = await fetch(`${api.url}/api/trpc/session.me`, {
      headers: { cookie: 'better-auth.session_token=a.b' },
    })
    expect(await procedure.text()).not.toMatch(/ECONNREFUSED|127\.0\.0\.1|stack|node_modules/)
  } finally {
    await api.close()
  }
})
