import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createDb } from '@bootfarm/db'
import { setAuditRetention } from '@bootfarm/db/audit-retention'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestApi, type TestApi } from '../../test/test-api.ts'
import { query } from '../../test/test-client.ts'
import { createTenant, signInAs } from '../../test/test-tenant.ts'
import { removeOldAuditEntries } from './remove-old-entries.ts'

let api: TestApi
let organizationIds: string[]
let cookie: string

const dayMs = 86_400_000
const keptDays = 40
/** More than one batch. */
const oldCount = 5_100

beforeAll(async () => {
  api = await startTestApi()
  const tenants = [await createTenant(api, 'own'), await createTenant(api, 'other')]
  organizationIds = tenants.map(({ organizationId }) => organizationId)
  cookie = await signInAs(api, organizationIds[0] ?? '', 'auditor')
  await api.db.auditEntry.deleteMany()
  await addEntries(organizationIds[0] ?? '', oldCount, keptDays + 2)
  await addEntries(organizationIds[1] ?? '', 3, keptDays + 2)
  for (const organizationId of organizationIds) await addEntries(organizationId, 7, keptDays - 2)
})
afterAll(() => api.close())

/** By the database's clock, which is the real one. */
async function addEntries(organizationId: string, count: number, daysAgo: number): Promise<void> {
  const at = new Date(Date.now() - daysAgo * dayMs)
  const entry = { organizationId, at, actorKind: 'system' as const, actorName: 'set-up' }
  const data = Array.from({ length: count }, () => ({ ...entry, action: 'farm.create', objectKind: 'farm' }))
  await api.db.auditEntry.createMany({ data })
}

const cli = fileURLToPath(import.meta.resolve('../../../../packages/db/src/cli.ts'))

/** Runs the command of the installation's owner. */
async function command(...args: string[]): Promise<string> {
  const env = { ...process.env, DATABASE_OWNER_URL: api.databaseUrl }
  const { stdout } = await promisify(execFile)(process.execPath, [cli, 'audit-retention', ...args], { env })
  return stdout
}

const remove = () => removeOldAuditEntries({ db: api.serverDb, clock: api.clock.read })
const countOf = (organizationId = '') => api.db.auditEntry.count({ where: { organizationId } })

test('entries are kept forever by default', async () => {
  expect(await remove()).toBe(0)
  expect(await countOf(organizationIds[0])).toBe(oldCount + 7)
})

test('the API’s role can neither set the retention nor remove or change an entry', async () => {
  const db = createDb(api.serverDatabaseUrl)
  const set = `set_config('bootfarm.organization_id', '${organizationIds[0]}', false)`
  for (const sql of [
    'insert into audit_retention (days) values (30)',
    'update audit_retention set days = 30',
    'delete from audit_retention',
    `delete from audit_entry where ${set} <> ''`,
    `update audit_entry set action = 'nothing' where ${set} <> ''`,
    'truncate audit_entry',
  ])
    await expect(db.$executeRawUnsafe(sql), sql).rejects.toThrow('permission denied')
  await db.$disconnect()
})

test('the command reports missing arguments', async () => {
  for (const args of [[], ['--days', '50', '--for-ever'], ['--days', '12'], ['--days', 'x']])
    await expect(command(...args)).rejects.toThrow(/audit-retention --days N|30 to 36500 days/)
})

test('the owner cannot have them removed before 30 days are over', async () => {
  for (const days of [29, 0, -1, 1.5, Number.NaN, 40_000])
    await expect(setAuditRetention(api.databaseUrl, days)).rejects.toThrow('30 to 36500 days')
  expect(await remove()).toBe(0)
})

test('older entries are removed in all organizations, each records the removal, and a second run finds nothing', async () => {
  expect(JSON.parse(await command('--days', String(keptDays)))).toEqual({
    auditDays: keptDays,
    before: 'for ever',
  })
  expect(await remove()).toBe(oldCount + 3)
  // One for each batch.
  expect(await countOf(organizationIds[0])).toBe(7 + 2)
  expect(await countOf(organizationIds[1])).toBe(7 + 1)
  const { items } = await query<{ items: { action: string; actorKind: string; after: object }[] }>(
    ...([api, cookie, 'audit.list'] as const),
    { action: 'audit.removeOld' },
  )
  expect(items).toHaveLength(2)
  expect(items[0]).toMatchObject({
    actorKind: 'system',
    after: { keptDays, removedCount: expect.any(Number) },
  })
  const told = items.map(({ after }) => (after as { removedCount: number }).removedCount)
  expect(told.reduce((sum, count) => sum + count)).toBe(oldCount)
  expect(await remove()).toBe(0)
  expect(await countOf(organizationIds[0])).toBe(7 + 2)
})

test('the record of a removal is removed later without a new one, and unlimited retention can be restored', async () => {
  const at = new Date(Date.now() - (keptDays + 2) * dayMs)
  await api.db.auditEntry.updateMany({ where: { action: 'audit.removeOld' }, data: { at } })
  expect(await remove()).toBe(3)
  expect(await api.db.auditEntry.count({ where: { action: 'audit.removeOld' } })).toBe(0)
  expect(JSON.parse(await command('--for-ever'))).toEqual({ auditDays: 'for ever', before: keptDays })
  await addEntries(organizationIds[0] ?? '', 2, keptDays + 2)
  expect(await remove()).toBe(0)
})
