import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { bootWith } from '../../test/edge-client.ts'
import { startTestApi, type TestApi } from '../../test/test-api.ts'
import { TestSite } from '../../test/test-site.ts'
import { createTenant } from '../../test/test-tenant.ts'
import type { Notifications } from '../context/notifications.ts'
import { newMemberActor } from '../rules/actor.ts'
import { BootFeeds } from './boot-feed.ts'

let api: TestApi

beforeAll(async () => {
  api = await startTestApi()
})
afterAll(() => api.close())

/** Notifications that never come. */
const silence: Notifications = {
  subscribe: () => () => undefined,
  isListening: () => true,
  announce: () => undefined,
  close: async () => undefined,
}

test('while boots change without a pause, all changes of that time are read at once', async () => {
  const { organizationId } = await createTenant(api, 'own')
  const steps: string[] = []
  const wakers: (() => void)[] = []
  const paused = Promise.withResolvers<void>()
  const feeds = new BootFeeds({
    db: api.serverDb,
    clock: api.clock.read,
    notifications: {
      ...silence,
      subscribe(_topic, wake) {
        wakers.push(wake)
        return () => undefined
      },
    },
    async findActors(_db, watchers) {
      steps.push('read')
      return watchers.map(({ actor }) => actor)
    },
    pause() {
      steps.push('pause')
      return paused.promise
    },
  })
  const actor = newMemberActor({ userId: organizationId, name: '', email: '' }, { id: organizationId, name: '' })
  const page = feeds.open({ actor, sessionId: null, open: null })
  await page.ready()
  const [wake] = wakers
  wake?.()
  await page.next()
  for (let count = 0; count < 5; count++) wake?.()
  paused.resolve()
  await page.next()
  expect(steps).toEqual(['read', 'pause', 'read', 'pause'])
  page.close()
})

test('a change that nobody told of is found by the next look', async () => {
  const site = await TestSite.open(api, 'untold', 'viewer')
  const { organizationId } = site.tenant
  const feeds = new BootFeeds({
    db: api.serverDb,
    clock: api.clock.read,
    notifications: silence,
    findActors: async (_db, watchers) => watchers.map(({ actor }) => actor),
    pause: async () => undefined,
    lookEveryMs: 1,
  })
  const actor = newMemberActor({ userId: organizationId, name: '', email: '' }, { id: organizationId, name: '' })
  const page = feeds.open({ actor, sessionId: null, open: null })
  await page.ready()
  const id = randomUUID()
  await site.report(bootWith({ id, mac: site.mac }))
  // On a slow machine the page is behind by now, and has to read what it missed.
  const read = async () => ((await page.next()) ?? (await page.readAfter(0n))).changes
  let changes = await read()
  while (changes.length === 0) changes = await read()
  expect(changes).toMatchObject([{ event: { kind: 'boot', boot: { id } } }])
  page.close()
})
