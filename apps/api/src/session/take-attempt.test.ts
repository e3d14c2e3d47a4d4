import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestApi, type TestApi } from '../../test/test-api.ts'
import { dropOldAttempts, takeAttempt } from './take-attempt.ts'

let api: TestApi
beforeAll(async () => {
  api = await startTestApi()
})
afterAll(() => api.close())

const hourMs = 3_600_000

test('counts of a window that is long over are forgotten, and others go on', async () => {
  const context = { db: api.serverDb }
  const take = (key: string) => takeAttempt(context, { key, countMax: 1, windowMs: hourMs })
  expect([await take('old'), await take('new')]).toEqual([true, true])
  const dayAgo = BigInt(Date.now() - 25 * hourMs)
  await api.db.rateLimit.update({ where: { key: 'old' }, data: { lastRequest: dayAgo } })
  await dropOldAttempts(context)
  const rows = await api.db.rateLimit.findMany({ select: { key: true } })
  expect(rows).toEqual([{ key: 'new' }])
  expect(await take('new')).toBe(false)
})
