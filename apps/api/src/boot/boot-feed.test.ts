import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestApi, type TestApi } from '../../test/test-api.ts'
import { createTenant } from '../../test/test-tenant.ts'
import { newMemberActor } from '../rules/actor.ts'
import { BootFeeds } from './boot-feed.ts'

let api: TestApi

beforeAll(async () => {
  api = await startTestApi()
})
afterAll(() => api.close())

test('while boots change without a pause, all changes of that time are read at once', async () => {
  const { organizationId } = await createTenant(api, 'own')
  const steps: string[] = []
  const wakers: (() => void)[] = []
  const paused = Promise.withResolvers<void>()
  const feeds = new BootFeeds({
    db: api.serverDb,
    clock: api.clock.read,
    notifications: {
      subscribe(_topic, wake) {
        wakers.push(wake)
        return () => undefined
      },
      isListening: () => true,
      close: async () => undefined,
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
