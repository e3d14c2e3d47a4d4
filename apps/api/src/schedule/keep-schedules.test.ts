import { openDb } from '@bootfarm/db'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestApi, type TestApi } from '../../test/test-api.ts'
import { createTenant } from '../../test/test-tenant.ts'
import { keepAllSchedules } from './keep-schedules.ts'

let api: TestApi

beforeAll(async () => {
  api = await startTestApi()
})
afterAll(() => api.close())

test('organizations in which nothing is due are not looked at', async () => {
  const [busy] = [await createTenant(api, 'busy'), await createTenant(api, 'idle')]
  const { organizationId, farmId } = busy
  const now = api.clock.read()
  const { id } = await api.db.schedule.create({
    data: {
      organizationId,
      farmId,
      name: 'Morning',
      ratePerMinute: 60,
      kind: 'cron',
      cron: '0 6 * * *',
      timeZone: 'UTC',
      renewAt: new Date(now.getTime() - 1),
      preparedUntil: now,
      createdAt: now,
      updatedAt: now,
    },
  })
  const statements: string[] = []
  const { db } = openDb(api.serverDatabaseUrl, ({ text }) => statements.push(text))
  try {
    await keepAllSchedules({ db, clock: api.clock.read })
    const renewed = await api.db.schedule.findFirstOrThrow({ where: { organizationId, id } })
    expect(renewed.instants.length).toBeGreaterThan(30)
    expect(statements.filter((text) => text.includes('for update skip locked')).length).toBeGreaterThan(0)
    statements.length = 0
    await keepAllSchedules({ db, clock: api.clock.read })
    expect(statements).toHaveLength(1)
  } finally {
    await db.$disconnect()
  }
})
