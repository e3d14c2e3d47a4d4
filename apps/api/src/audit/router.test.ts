import { inOrganization } from '@bootfarm/db'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestApi, type TestApi } from '../../test/test-api.ts'
import { callProcedure, query } from '../../test/test-client.ts'
import { createTenant, sessionCookie, signInAs, type TestTenant } from '../../test/test-tenant.ts'

interface Entries {
  items: { id: string; action: string; objectName: string | null; actorName: string }[]
  nextCursor: string | null
}

let api: TestApi
let tenant: TestTenant
let cookie: string
const hostile = '=HYPERLINK("http://x","<img src=x onerror=alert(1)>")'

beforeAll(async () => {
  api = await startTestApi()
  tenant = await createTenant(api, 'own')
  cookie = await signInAs(api, tenant.organizationId, 'auditor')
  const { organizationId, farmId, siteId } = tenant
  const entry = { organizationId, actorKind: 'person' as const, objectKind: 'device' }
  await api.db.auditEntry.createMany({
    data: Array.from({ length: 250 }, (_, index) => ({
      ...entry,
      at: new Date(Date.UTC(2026, 9, 1, 0, 0, index)),
      actorName: index % 2 === 0 ? 'Even' : 'Odd',
      action: index % 5 === 0 ? 'device.update' : 'site.setCapture',
      objectName: index === 7 ? hostile : `pc-${index}`,
      after: index === 7 ? { vendorClass: hostile } : { index },
      ...(index < 10 ? { farmId, siteId } : {}),
    })),
  })
})
afterAll(() => api.close())

async function readAll(input: object): Promise<Entries['items']> {
  const items: Entries['items'] = []
  let cursor: string | null = null
  do {
    const page: Entries = await query<Entries>(api, cookie, 'audit.list', { ...input, cursor })
    items.push(...page.items)
    cursor = page.nextCursor
  } while (cursor)
  return items
}

describe('audit.list', () => {
  test('gives every entry once, newest first', async () => {
    const items = await readAll({ limit: 100 })
    expect(new Set(items.map(({ id }) => id)).size).toBe(250)
    expect([items[0]?.objectName, items.at(-1)?.objectName]).toEqual(['pc-249', 'pc-0'])
  })

  test('is narrowed down by who, what, when and names', async () => {
    expect(await readAll({ action: 'device.update' })).toHaveLength(50)
    expect(await readAll({ action: 'site.' })).toHaveLength(200)
    expect(await readAll({ search: 'even' })).toHaveLength(125)
    expect(await readAll({ search: 'PC-24' })).toHaveLength(11)
    expect(await readAll({ search: '%' })).toHaveLength(0)
    const since = '2026-10-01T00:00:10.000Z'
    expect(await readAll({ since, until: '2026-10-01T00:00:20.000Z' })).toHaveLength(10)
  })

  test('shows an auditor of one site what happened there', async () => {
    const { organizationId, siteId } = tenant
    const user = await api.db.user.create({ data: { name: 'A', email: 'site-auditor@example.test' } })
    await api.db.membership.create({ data: { organizationId, userId: user.id } })
    await api.db.roleGrant.create({ data: { organizationId, userId: user.id, role: 'auditor', siteId } })
    const page = await query<Entries>(api, await sessionCookie(api, user.id), 'audit.list', { limit: 100 })
    expect(page.items).toHaveLength(10)
  })
})

describe('the export', () => {
  const read = async (search: string, as = cookie) => {
    const answer = await fetch(`${api.url}/api/v1/audit-exports?${search}`, { headers: { cookie: as } })
    return { status: answer.status, text: await answer.text() }
  }

  test('has all that the filters leave, line by line', async () => {
    const { text } = await read('format=jsonl&action=device.update')
    const lines = text.trimEnd().split('\n')
    expect(lines).toHaveLength(50)
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ action: 'device.update', objectName: 'pc-245' })
  })

  test('keeps a spreadsheet from running a device’s text', async () => {
    const { text } = await read(`format=csv&search=${encodeURIComponent('HYPERLINK')}`)
    expect(text.split('\r\n')).toHaveLength(3)
    expect(text).toContain(`"'=HYPERLINK(""http://x""`)
    expect(text).not.toMatch(/(^|,)"?=/m)
  })

  test('refuses readers without permission, and explains an invalid filter', async () => {
    expect((await read('', '')).status).toBe(401)
    expect((await read('', await signInAs(api, tenant.organizationId, 'operator'))).status).toBe(403)
    const wrong = await read('since=yesterday')
    expect([wrong.status, wrong.text]).toEqual([400, expect.stringContaining('since')])
  })
})

test.each([
  'update audit_entry set actor_name = null',
  'delete from audit_entry',
  'truncate audit_entry',
  'drop table audit_entry',
  'alter table audit_entry disable row level security',
  'create trigger t before insert on audit_entry execute function now()',
])('the API itself cannot %s', async (sql) => {
  const change = inOrganization(api.serverDb, tenant.organizationId, (db) => db.$executeRawUnsafe(sql))
  await expect(change).rejects.toThrow(/permission denied|must be owner/)
  expect(await api.db.auditEntry.count({ where: { organizationId: tenant.organizationId } })).toBe(250)
})

test('another organization finds none of the entries', async () => {
  const other = await createTenant(api, 'other')
  const foreign = await signInAs(api, other.organizationId, 'owner')
  expect((await query<Entries>(api, foreign, 'audit.list', {})).items).toEqual([])
  const [entry] = await readAll({ search: 'pc-100' })
  const input = { entryId: entry?.id }
  const answer = await callProcedure(api, { path: 'audit.get', type: 'query', input, cookie: foreign })
  expect(answer.status).toBe(404)
})
