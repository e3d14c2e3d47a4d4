import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestApi, type TestApi } from '../../../test/test-api.ts'

let api: TestApi
let owner: pg.Client
let jobsProblem: string | null = null

beforeAll(async () => {
  api = await startTestApi({
    change: (options) => ({
      ...options,
      async checkJobs() {
        if (jobsProblem) throw new Error(jobsProblem)
      },
    }),
  })
  owner = new pg.Client({ connectionString: api.databaseUrl })
  await owner.connect()
})
afterAll(async () => {
  await owner.end()
  await api.close()
})

async function ready() {
  const answer = await fetch(`${api.url}/readyz`)
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
}

test('ready is who has all migrations of its build, its notifications and its jobs', async () => {
  expect(await ready()).toEqual({ status: 200, body: { status: 'ready' } })
})

test('a migration of this build that the database has not is named', async () => {
  const last = `(select max(migration_name) from _prisma_migrations)`
  const { rows } = await owner.query<{ name: string }>(
    `update _prisma_migrations set finished_at = null where migration_name = ${last} returning migration_name as name`,
  )
  expect(await ready()).toMatchObject({
    status: 503,
    body: {
      code: 'unavailable',
      detail: expect.stringContaining(String(rows[0]?.name)),
      notReady: [{ part: 'migrations' }],
    },
  })
  await owner.query(`update _prisma_migrations set finished_at = now() where finished_at is null`)
  expect((await ready()).status).toBe(200)
})

test('jobs that cannot run are named, and the reason stays in the log', async () => {
  jobsProblem = 'connect ECONNREFUSED 10.1.2.3'
  const answer = await ready()
  jobsProblem = null
  expect(answer).toMatchObject({ status: 503, body: { notReady: [{ part: 'jobs' }] } })
  expect(JSON.stringify(answer.body)).not.toContain('10.1.2.3')
})

test('the API’s role reads the names of migrations and not their table', async () => {
  const { serverDb } = api
  expect(await serverDb.$queryRaw`select name from applied_migrations() as name limit 1`).toHaveLength(1)
  await expect(serverDb.$queryRaw`select * from _prisma_migrations`).rejects.toThrow(/permission denied/)
})

test('while it shuts down it lives, answers, and is not ready', async () => {
  const { promise: drained, resolve: endDrain } = Promise.withResolvers<void>()
  const { promise: draining, resolve: begin } = Promise.withResolvers<void>()
  const stopping = await startTestApi({
    beside: api,
    change: (options) => ({
      ...options,
      drain() {
        begin()
        return drained
      },
    }),
  })
  const closed = stopping.close()
  await draining
  const answer = await fetch(`${stopping.url}/readyz`)
  expect([answer.status, await answer.json()]).toMatchObject([503, { notReady: [{ part: 'process' }] }])
  expect((await fetch(`${stopping.url}/healthz`)).status).toBe(200)
  endDrain()
  await closed
})
