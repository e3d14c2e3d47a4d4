import { once } from 'node:events'
import pg from 'pg'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../test/test-database.ts'
import { type JobQueue, jobNames, openJobQueue } from './job-queue.ts'
import { migrate } from './migrate.ts'

/** No test is over so late that it sees the next one. */
const slotSeconds = 10 * 365 * 86_400
let database: TestDatabase
let owner: pg.Client
let errors: string[]
const open: JobQueue[] = []

beforeEach(async () => {
  database = await createTestDatabase()
  owner = new pg.Client({ connectionString: database.url })
  await owner.connect()
  errors = []
})
afterEach(async () => {
  for (const queue of open.splice(0)) await queue.stop()
  await owner.end()
  await database.drop()
})

async function openQueue(): Promise<JobQueue> {
  const queue = await openJobQueue(database.apiUrl, {
    onDone: ({ job, error }) => error && errors.push(`${job}: ${error}`),
    onError: (error) => errors.push(String(error)),
  })
  open.push(queue)
  return queue
}

/** States of the jobs that were asked for. */
async function states(): Promise<string[]> {
  const { rows } = await owner.query<{ state: string }>('select state::text from pgboss.job order by created_on')
  return rows.map(({ state }) => state)
}

test('a job is done once in its time, however many processes ask for it', async () => {
  const runs: string[] = []
  const asking = new EventTarget()
  const done = once(asking, 'done')
  const work = (process: string) => async () => {
    runs.push(process)
    asking.dispatchEvent(new Event('done'))
  }
  const queues = [await openQueue(), await openQueue(), await openQueue()]
  await Promise.all(queues.map((queue, index) => queue.every('keep schedules', slotSeconds, work(`process ${index}`))))
  await done
  for (const queue of queues) await queue.stop()
  expect(runs).toHaveLength(1)
  expect(await states()).toEqual(['completed'])
  const later = await openQueue()
  await later.every('keep schedules', slotSeconds, work('a later one'))
  expect(await states()).toEqual(['completed'])
  expect(errors).toEqual([])
})

test('a stop waits for the job that runs, and one that failed is tried again', async () => {
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
  const { promise: allowed, resolve: allow } = Promise.withResolvers<void>()
  const queue = await openQueue()
  await queue.every('keep schedules', slotSeconds, async () => {
    begin()
    await allowed
    throw new Error('the network is away')
  })
  await begun
  const stopped = queue.stop()
  allow()
  await stopped
  expect(errors).toEqual(['keep schedules: Error: the network is away'])
  expect(await states()).toEqual(['retry'])
})

test('a mail is kept until it is delivered, by whichever process, and tried again after a failure', async () => {
  const taken: string[] = []
  const { promise: isTaken, resolve: take } = Promise.withResolvers<void>()
  const sender = await openQueue()
  await sender.sendMail('sealed')
  await sender.stop()
  expect(await states()).toEqual(['created'])
  const first = await openQueue()
  const { promise: hasFailed, resolve: fail } = Promise.withResolvers<void>()
  await first.deliverMails(async () => {
    fail()
    throw new Error('the mail server is away')
  })
  await hasFailed
  await first.stop()
  expect(await states()).toEqual(['retry'])
  // The pause before the next try is over.
  await owner.query(`update pgboss.job set start_after = now()`)
  const second = await openQueue()
  await second.deliverMails(async (sealed) => {
    taken.push(sealed)
    take()
  })
  await isTaken
  await second.stop()
  expect([taken, await states()]).toEqual([['sealed'], ['completed']])
})

test('the API has a queue for each job and can make none, nor change how they are kept', async () => {
  const { rows } = await owner.query<{ name: string }>('select name from pgboss.queue')
  const names = [...jobNames.map((name) => name.replaceAll(' ', '-')), 'mail']
  expect(rows.map(({ name }) => name).sort()).toEqual(names.sort())
  const api = new pg.Client({ connectionString: database.apiUrl })
  await api.connect()
  for (const sql of [
    'create table pgboss.x ()',
    'truncate pgboss.job',
    'drop table pgboss.job_common',
    'alter table pgboss.job add x int',
  ])
    await expect(api.query(sql)).rejects.toMatchObject({ code: '42501' })
  await api.end()
})

test('an API whose database has no queues says so, and `migrate` makes them', async () => {
  await owner.query('drop schema pgboss cascade')
  await expect(openQueue()).rejects.toThrow(/migrate/)
  await migrate(database.url)
  await openQueue()
})
