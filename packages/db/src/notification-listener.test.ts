import pg from 'pg'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../test/test-database.ts'
import { listen, type NotificationListener } from './notification-listener.ts'

const channel = 'test'
let database: TestDatabase
let owner: pg.Client
let own: NotificationListener
let other: NotificationListener

beforeEach(async () => {
  database = await createTestDatabase()
  owner = new pg.Client({ connectionString: database.url })
  await owner.connect()
  own = await listen(database.apiUrl, channel)
  other = await listen(database.apiUrl, channel)
})
afterEach(async () => {
  for (const listener of [own, other]) await listener.close()
  await owner.end()
  await database.drop()
})

/** Resolves at the next notification of this payload, or when the listener has connected again. */
function wokenBy(listener: NotificationListener, payload: string): Promise<void> {
  return new Promise((resolve) => {
    const unsubscribe = listener.subscribe(payload, () => {
      unsubscribe()
      resolve()
    })
  })
}

test('what one announces wakes the subscribers of all, its own included', async () => {
  const woken = [own, other].map((listener) => wokenBy(listener, 'a'))
  own.announce(['a', 'b'])
  await Promise.all(woken)
})

test('a listener that is closed at once has sent what it announced', async () => {
  const [first, second] = [wokenBy(other, 'a'), wokenBy(other, 'b')]
  own.announce(['a'])
  own.announce(['b'])
  await own.close()
  await Promise.all([first, second])
})

test('what is announced while the connection is lost is sent when it is back', async () => {
  const payloads: string[] = []
  owner.on('notification', ({ payload = '' }) => payloads.push(payload))
  await owner.query(`listen ${channel}`)
  const back = wokenBy(own, 'nothing')
  await owner.query('select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1', [
    `listen ${channel}`,
  ])
  await expect.poll(() => own.isListening()).toBe(false)
  own.announce(['a'])
  await back
  const arrived = new Promise((resolve) => owner.once('notification', resolve))
  if (payloads.length === 0) await arrived
  expect(payloads).toEqual(['a'])
})
