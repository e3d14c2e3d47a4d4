import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { EdgeClient } from '../../test/edge-client.ts'
import { apiKey } from '../../test/matrix/callers.ts'
import { secretsOf } from '../../test/matrix/tenant-secrets.ts'
import { inputOfSample } from '../../test/procedure-samples.ts'
import type { SampleTenant } from '../../test/sample.ts'
import { createSampleTenant } from '../../test/sample-tenant.ts'
import { startTestApi, type TestApi } from '../../test/test-api.ts'
import { callProcedure, mutate, query } from '../../test/test-client.ts'
import { makeJoinToken, signInAs, signInAsPlatformOperator } from '../../test/test-tenant.ts'
import { forEachOrganization, OrganizationsFailed } from '../context/for-each-organization.ts'
import { procedurePolicies } from '../http/trpc/policies.ts'
import { isMemberPolicy } from '../http/trpc/policy.ts'
import { recordJob } from './record-job.ts'

// An administrator of the installation sees its health, sets quotas and suspends, and sees no tenant's content.

let api: TestApi
let tenant: SampleTenant
let operator: string
let owner: string
beforeAll(async () => {
  api = await startTestApi()
  tenant = await createSampleTenant(api, randomUUID())
  operator = await signInAsPlatformOperator(api)
  owner = await signInAs(api, tenant.organizationId, 'owner')
})
afterAll(() => api.close())

const ask = (cookie: string, path: string, type: 'query' | 'mutation', input: unknown) =>
  callProcedure(api, { path, type, cookie, input })
const suspend = (suspended: boolean) =>
  mutate(api, operator, 'platform.setSuspended', { organizationId: tenant.organizationId, suspended })

test('no answer to who runs the installation holds anything that a tenant has, or a name or address of a person', async () => {
  const { organizationId } = tenant
  const users = await api.db.user.findMany({ where: { isPlatformOperator: false } })
  const secrets = [
    ...(await secretsOf(api.db, organizationId, [])).filter((text) => text !== organizationId),
    ...users.flatMap(({ name, email }) => [name, email]),
  ]
  expect(secrets).toContain(tenant.deviceIds[0])
  expect(secrets.length).toBeGreaterThan(500)
  // Each of them, so that one made later is looked at, too.
  const procedures = procedurePolicies().filter(({ policy }) => !isMemberPolicy(policy) && policy.who === 'platform')
  expect(procedures.length).toBeGreaterThan(4)
  for (const { path, type } of procedures) {
    const told = await callProcedure(api, {
      path,
      type,
      cookie: operator,
      input: inputOfSample(path, tenant),
    })
    expect([path, told.status]).toEqual([path, 200])
    // The operator's own id is one of a person's, and the one who acted.
    const leaks = secrets.filter((secret) => told.text.includes(secret) && !isFigure(secret))
    expect([path, leaks]).toEqual([path, []])
  }
})

/** Words of the figures themselves, such as a version or the name of a quota. */
function isFigure(text: string): boolean {
  return /^\d+\.\d+\.\d+$/.test(text) || ['webhooks', 'schedules', 'api_keys'].includes(text)
}

test('organizations are listed with their figures, page by page, and found by a part of the name', async () => {
  const beside = await createSampleTenant(api, 'wanted-one')
  const edge = await EdgeClient.enrolled(api.url, await makeJoinToken(api, beside))
  await edge.heartbeat()
  interface Page {
    items: { id: string; edgesOnline: number; quotas: object[]; edgeVersions: Record<string, number> }[]
    nextCursor: string | null
  }
  const found = await query<Page>(api, operator, 'platform.organizations', { search: 'WANTED' })
  expect(found.items).toMatchObject([{ id: beside.organizationId, edgesOnline: 1 }])
  expect(found.items[0]?.quotas).toContainEqual({ name: 'devices', used: expect.any(Number), allowed: null })
  const devices = await api.db.device.count({
    where: { organizationId: beside.organizationId, deletionId: null },
  })
  expect(found.items[0]?.quotas).toContainEqual({ name: 'devices', used: devices, allowed: null })
  const first = await query<Page>(api, operator, 'platform.organizations', { limit: 1 })
  const second = await query<Page>(api, operator, 'platform.organizations', {
    limit: 1,
    cursor: first.nextCursor,
  })
  expect(new Set([...first.items, ...second.items].map(({ id }) => id)).size).toBe(2)
  expect(second.nextCursor).toBeNull()
})

test('quotas are set and removed, shown to the organization, and logged on both sides', async () => {
  const { organizationId } = tenant
  const set = (quotas: object) => mutate(api, operator, 'platform.setQuotas', { organizationId, quotas })
  await set({ devices: 0, sites: 10 })
  const refused = await ask(owner, 'device.create', 'mutation', {
    collectionId: tenant.collectionId,
    name: 'one-more',
    mac: '02:bf:0f:00:00:01',
  })
  expect(refused.code).toBe('quota_exceeded')
  const { quotas } = await query<{ quotas: object[] }>(api, owner, 'organization.usage', {})
  expect(quotas).toContainEqual({ name: 'sites', used: expect.any(Number), allowed: 10 })
  await set({ devices: null, sites: null })
  expect(await api.db.organizationQuota.count({ where: { organizationId } })).toBe(0)
  const events = await query<{ items: object[] }>(api, operator, 'platform.events', {})
  expect(events.items).toContainEqual(
    expect.objectContaining({
      action: 'organization.setQuotas',
      organizationId,
      after: { devices: 0, sites: 10 },
    }),
  )
  const audit = await query<{ items: object[] }>(api, owner, 'audit.list', {})
  expect(JSON.stringify(audit.items)).toContain('who runs this installation')
  await expect(api.serverDb.platformEvent.deleteMany({})).rejects.toThrow(/denied/)
  const absent = { organizationId: randomUUID(), quotas: { devices: 1 } }
  expect((await ask(operator, 'platform.setQuotas', 'mutation', absent)).code).toBe('not_found')
})

test('a suspended organization can be read and not changed, by any API, and its machines keep booting', async () => {
  const { organizationId } = tenant
  const edge = await EdgeClient.enrolled(api.url, await makeJoinToken(api, tenant))
  const joinToken = await makeJoinToken(api, tenant)
  const key = await apiKey(api, organizationId, 'owner')
  await suspend(true)
  expect((await ask(owner, 'farm.list', 'query', {})).status).toBe(200)
  expect(await query(api, owner, 'organization.get', {})).toMatchObject({ suspendedAt: expect.any(String) })
  const told = await ask(owner, 'farm.create', 'mutation', { name: 'New' })
  expect([told.status, told.code]).toEqual([403, 'organization_suspended'])
  const byRest = await fetch(`${api.url}/api/v1/farms`, {
    method: 'POST',
    headers: { ...key.headers, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'New' }),
  })
  expect([byRest.status, await byRest.json()]).toMatchObject([403, { code: 'organization_suspended' }])
  expect((await edge.heartbeat()).status).toBe(200)
  expect((await edge.state('0.0', 0)).status).toBe(200)
  const refused = await new EdgeClient(api.url).enrol(joinToken)
  expect(refused.body).toMatchObject({ code: 'organization_suspended' })
  await suspend(false)
  expect((await ask(owner, 'farm.create', 'mutation', { name: 'New' })).status).toBe(200)
})

test('a job that fails for one organization is done for the others, and who runs the installation sees it', async () => {
  const context = { db: api.serverDb, clock: api.clock.read }
  const done: string[] = []
  const run = () =>
    recordJob(context, 'a job', () =>
      forEachOrganization(context, async (id) => {
        if (id === tenant.organizationId) throw new Error(`a secret of ${tenant.deviceIds[0]}`)
        done.push(id)
      }),
    )
  await expect(run()).rejects.toThrow(OrganizationsFailed)
  await expect(run()).rejects.toThrow(tenant.organizationId)
  expect(done.length).toBe(2 * ((await api.db.organization.count()) - 1))
  const read = async () => (await query<{ jobs: object[] }>(api, operator, 'platform.health')).jobs
  expect(await read()).toEqual([
    {
      name: 'a job',
      failureCount: 2,
      failedOrganizationCount: 1,
      lastFailureCode: 'Error',
      lastSucceededAt: null,
      lastFailedAt: api.clock.now.toISOString(),
    },
  ])
  await recordJob(context, 'a job', async () => undefined)
  expect(await read()).toMatchObject([
    { failureCount: 0, failedOrganizationCount: 0, lastSucceededAt: api.clock.now.toISOString() },
  ])
})
