import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bootReports, bootWith, EdgeClient } from '../../test/edge-client.ts'
import { menusMadeAt, type SampleTenant, samples } from '../../test/procedure-samples.ts'
import { startTestApi, type TestApi } from '../../test/test-api.ts'
import { callProcedure } from '../../test/test-client.ts'
import { createTenant, makeJoinToken, signInAs, type TestTenant } from '../../test/test-tenant.ts'
import { roleHas, roles } from '../domain/permissions.ts'
import { procedurePolicies } from './policies.ts'

let api: TestApi
let tenant: SampleTenant
const cookies = new Map<string, string>()

beforeAll(async () => {
  api = await startTestApi()
  const rows = await createTenant(api, 'own')
  const edge = await EdgeClient.enrolled(api.url, await makeJoinToken(api, rows))
  const bootId = randomUUID()
  await edge.reports(1, bootReports(1, [bootWith({ id: bootId, mac: rows.macs[0] ?? '' })]))
  const spare = await EdgeClient.enrolled(api.url, await makeJoinToken(api, rows))
  const spareMenuIds = Array.from({ length: 40 }, () => randomUUID())
  const spareScheduleIds = Array.from({ length: 60 }, () => randomUUID())
  const runId = randomUUID()
  const edges = { edgeId: edge.edgeId, spareEdgeId: spare.edgeId }
  tenant = { ...rows, ...edges, bootId, spareMenuIds, spareScheduleIds, runId }
  await createMenus(rows, spareMenuIds)
  await createSchedules(tenant)
  const other = await createTenant(api, 'other')
  for (const role of roles) cookies.set(role, await signInAs(api, rows.organizationId, role))
  cookies.set('other organization', await signInAs(api, other.organizationId, 'owner'))
  cookies.set('without membership', await signInAs(api, other.organizationId, null))
})
afterAll(() => api.close())

async function createMenus({ organizationId, farmId }: TestTenant, ids: string[]): Promise<void> {
  const menu = { organizationId, farmId, timeoutMs: 10_000, defaultPosition: 0 }
  const times = { createdAt: menusMadeAt, updatedAt: menusMadeAt }
  await api.db.bootMenu.createMany({ data: ids.map((id) => ({ ...menu, ...times, id, name: id })) })
  const entry = { organizationId, position: 0, title: 'Local disk' }
  await api.db.bootMenuEntry.createMany({ data: ids.map((menuId) => ({ ...entry, menuId })) })
}

async function createSchedules({
  organizationId,
  farmId,
  spareScheduleIds,
  runId,
}: SampleTenant): Promise<void> {
  const now = menusMadeAt
  const schedule = {
    ...{
      organizationId,
      farmId,
      ratePerMinute: 10,
      kind: 'cron' as const,
      cron: '30 6 * * *',
      timeZone: 'UTC',
    },
    ...{ preparedUntil: now, createdAt: now, updatedAt: now },
  }
  await api.db.schedule.createMany({ data: spareScheduleIds.map((id) => ({ ...schedule, id, name: id })) })
  const run = {
    action: 'power_on' as const,
    power: 'wake_on_lan' as const,
    ratePerMinute: 10,
    deviceCount: 0,
  }
  const scheduleId = spareScheduleIds[0] ?? ''
  await api.db.scheduleRun.create({
    data: { ...run, organizationId, id: runId, scheduleId, instant: now, closesAt: now, createdAt: now },
  })
}

const procedures = procedurePolicies()

function call(procedure: (typeof procedures)[number], who: string, id?: string) {
  const { idName, input: rest } = samples[procedure.path] ?? {}
  const takesNothing = procedure.path === 'session.me' || procedure.path === 'boot.onChange'
  const input = idName
    ? { [idName]: id, ...(typeof rest === 'function' ? rest(tenant) : rest) }
    : takesNothing
      ? undefined
      : {}
  return callProcedure(api, { path: procedure.path, type: procedure.type, input, cookie: cookies.get(who) })
}

const ownIdOf = (path: string) => samples[path]?.ownId?.(tenant)

test('every procedure has a sample here', () => {
  expect(Object.keys(samples).sort()).toEqual(procedures.map(({ path }) => path).sort())
})

test('an API with a procedure without a policy does not start', () => {
  const open = { _def: { procedures: { 'a.b': { _def: { type: 'query' } } } } }
  expect(() => procedurePolicies(open)).toThrow('The procedure a.b has no policy')
})

describe.each(procedures)('$path', (procedure) => {
  const { path, policy } = procedure
  const takesId = samples[path]?.idName !== undefined

  test.each(['anonymous', 'without membership'])('is closed to %s, whatever the input', async (who) => {
    for (const id of [ownIdOf(path), randomUUID(), 'no id']) {
      const answer = await call(procedure, who, id)
      expect([answer.status, answer.code]).toEqual([401, 'unauthenticated'])
    }
  })

  test.each(roles)('does for %s what its policy says', async (who) => {
    const answer = await call(procedure, who, ownIdOf(path))
    if (roleHas(who, policy.permission)) expect(answer.status).toBe(200)
    else expect([answer.status, answer.code]).toEqual([403, 'forbidden'])
  })

  test('shows another organization nothing', async () => {
    const foreign = await call(procedure, 'other organization', ownIdOf(path))
    for (const id of [tenant.farmId, tenant.siteId, tenant.edgeId, tenant.bootId, ...tenant.deviceIds])
      expect(foreign.text).not.toContain(id)
    if (!takesId) return
    const absent = await call(procedure, 'other organization', randomUUID())
    expect([foreign.status, foreign.code]).toEqual([404, 'not_found'])
    expect(foreign.text).toBe(absent.text)
  })

  if (!takesId) return
  test('refuses an id that is none', async () => {
    const answer = await call(procedure, 'owner', '1 or 1=1')
    expect([answer.status, answer.code]).toEqual([400, 'invalid'])
    expect(answer.text).not.toMatch(/stack|node_modules|\.ts/)
  })
})
