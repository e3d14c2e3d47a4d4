import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { AuthClient } from '../../test/auth-client.ts'
import { EdgeClient } from '../../test/edge-client.ts'
import { apiKey } from '../../test/matrix/callers.ts'
import { rowsOf } from '../../test/matrix/tenant-secrets.ts'
import type { SampleTenant } from '../../test/sample.ts'
import { createSampleTenant } from '../../test/sample-tenant.ts'
import { startTestApi, type TestApi } from '../../test/test-api.ts'
import { callProcedure, mutate, query } from '../../test/test-client.ts'
import { createPerson, createTenant, makeJoinToken, sessionCookie, signInAs } from '../../test/test-tenant.ts'
import { totpOf } from '../../test/totp.ts'
import { deleteDueOrganizations, edgesToldMs } from './delete-due-organizations.ts'

// The end of an organization: asked for, stopped, and carried out so that nothing of it is left and nothing else is
// missing.

const dayMs = 86_400_000
// Each makes a whole tenant, and some wait for a lock: generous where the machine is busy.
let api: TestApi
let other: SampleTenant
beforeAll(async () => {
  api = await startTestApi()
  other = await createSampleTenant(api, randomUUID())
})
afterAll(() => api.close())

const job = () =>
  deleteDueOrganizations({
    db: api.serverDb,
    clock: api.clock.read,
    async sendMail(mail) {
      api.mails.push(mail)
      return true
    },
  })

async function setUp() {
  const tenant = await createSampleTenant(api, randomUUID())
  const cookie = await signInAs(api, tenant.organizationId, 'owner')
  await signedIn(0)
  return { tenant, cookie, name: tenant.organizationName }
}

/** By the test's clock, which may be far from the sign-in's own. */
const signedIn = (minutesAgo: number) =>
  api.db.session.updateMany({ data: { createdAt: new Date(api.clock.now.getTime() - minutesAgo * 60_000) } })

const call = (cookie: string, path: string, input: object) =>
  callProcedure(api, { path, type: 'mutation', cookie, input })
const isThere = async (id: string) => (await api.db.organization.findUnique({ where: { id } })) !== null
const mailsOf = ({ organizationName }: SampleTenant, words: string) =>
  api.mails.filter(({ subject }) => subject === `${organizationName} ${words}`).length

async function rowCount(organizationId: string): Promise<number> {
  return Object.values(await rowsOf(api.db, organizationId)).flat().length
}

test('an owner requests deletion with the typed name, every owner is notified, everything continues, and an owner cancels it', async () => {
  const { tenant, cookie, name } = await setUp()
  await signInAs(api, tenant.organizationId, 'owner')
  const admin = await signInAs(api, tenant.organizationId, 'admin')
  expect((await call(admin, 'organization.askDeletion', { name })).code).toBe('forbidden')
  expect((await call(cookie, 'organization.askDeletion', { name: 'another' })).code).toBe('invalid')
  // Its creator is the third owner.
  const key = await apiKey(api, tenant.organizationId, 'owner')
  const byKey = { path: 'organization.askDeletion', type: 'mutation' as const, headers: key.headers }
  expect((await callProcedure(api, { ...byKey, input: { name } })).code).toBe('forbidden')
  const asked = await mutate<{ deleteAfter: string }>(api, cookie, 'organization.askDeletion', { name })
  expect(new Date(asked.deleteAfter).getTime()).toBe(api.clock.now.getTime() + 14 * dayMs)
  expect(mailsOf(tenant, 'will be deleted')).toBe(3)
  // A second request neither delays it nor notifies anyone again.
  api.clock.advance(60_000)
  const again = await call(cookie, 'organization.askDeletion', { name })
  expect(again.data).toMatchObject({ deleteAfter: asked.deleteAfter })
  expect(mailsOf(tenant, 'will be deleted')).toBe(3)
  const seen = await query(api, admin, 'organization.get', {})
  expect(seen).toMatchObject({ deleteAfter: asked.deleteAfter })
  await mutate(api, admin, 'farm.create', { name: 'Still at work' })
  await job()
  expect((await call(admin, 'organization.cancelDeletion', {})).code).toBe('forbidden')
  expect((await call(cookie, 'organization.cancelDeletion', {})).data).toMatchObject({ deleteAfter: null })
  expect(mailsOf(tenant, 'will not be deleted')).toBe(3)
  api.clock.advance(30 * dayMs)
  await job()
  expect(await isThere(tenant.organizationId)).toBe(true)
  const actions = await api.db.auditEntry.findMany({
    where: { organizationId: tenant.organizationId, objectKind: 'organization' },
    select: { action: true },
  })
  expect(actions.map(({ action }) => action).sort()).toEqual([
    'organization.askDeletion',
    'organization.askDeletion',
    'organization.cancelDeletion',
  ])
})

test('who signed in long ago gives the password again', async () => {
  const { cookie, name } = await setUp()
  await signedIn(11)
  const told = await call(cookie, 'organization.askDeletion', { name })
  expect([told.status, told.code]).toEqual([403, 'confirmation_needed'])
})

test('after the grace period nobody has access, edges are notified, and no row remains, even after a kill in the middle', async () => {
  const { tenant, cookie, name } = await setUp()
  const { organizationId } = tenant
  const key = await apiKey(api, organizationId, 'owner')
  const edge = await EdgeClient.enrolled(api.url, await makeJoinToken(api, tenant))
  const offline = await EdgeClient.enrolled(api.url, await makeJoinToken(api, tenant))
  expect((await edge.heartbeat()).status).toBe(200)
  const before = await rowsOf(api.db, organizationId)
  const empty = Object.keys(before).filter((table) => before[table]?.length === 0)
  // The proof is worth what there was to delete.
  expect(Object.keys(before).length - empty.length).toBeGreaterThan(25)
  const othersBefore = await rowsOf(api.db, other.organizationId)
  await mutate(api, cookie, 'organization.askDeletion', { name })
  api.clock.advance(14 * dayMs)
  await job()
  expect(mailsOf(tenant, 'is being deleted')).toBe(2)
  expect((await callProcedure(api, { path: 'farm.list', type: 'query', input: {}, cookie })).status).toBe(401)
  const byKey = { path: 'farm.list', type: 'query' as const, input: {}, headers: key.headers }
  expect((await callProcedure(api, byKey)).status).toBe(401)
  expect((await edge.heartbeat()).body).toMatchObject({ code: 'edge_revoked' })
  expect(await isThere(organizationId)).toBe(true)
  await job()
  expect(mailsOf(tenant, 'is being deleted')).toBe(2)

  api.clock.advance(edgesToldMs)
  const left = await rowCount(organizationId)
  await killInTheMiddle(tenant)
  const rest = await rowCount(organizationId)
  expect(await isThere(organizationId)).toBe(true)
  expect([rest > 0, rest < left]).toEqual([true, true])
  await job()
  expect(await isThere(organizationId)).toBe(false)
  expect(Object.entries(await rowsOf(api.db, organizationId)).filter(([, rows]) => rows.length > 0)).toEqual([])
  expect(await rowsOf(api.db, other.organizationId)).toEqual(othersBefore)
  expect((await offline.heartbeat()).body).toMatchObject({ code: 'edge_unknown' })
  const event = await api.db.platformEvent.findFirstOrThrow({
    where: { subjectId: organizationId, action: 'organization.deleted' },
  })
  expect(event.actorUserId).not.toBeNull()
  expect(JSON.stringify(event)).not.toContain(name)
  const session = await api.db.session.count({ where: { activeOrganizationId: organizationId } })
  expect(session).toBe(0)
})

/**
 * Somebody holds the row that goes in the last step: the job removes all the others, each lot for itself, waits, and
 * loses its connection there.
 */
async function killInTheMiddle({ organizationId }: SampleTenant): Promise<void> {
  let running: Promise<unknown> | undefined
  await api.db.$transaction(
    async (holder) => {
      await holder.$queryRaw`select organization_id from boot_feed
        where organization_id = ${organizationId}::uuid for update`
      running = expect(job()).rejects.toThrow(organizationId)
      await expect
        .poll(
          async () => {
            const rows = await api.db.$queryRaw<{ killed: boolean }[]>`
              select pg_terminate_backend(pid) as killed from pg_stat_activity
              where datname = current_database() and wait_event_type = 'Lock' and query like '%delete_organization(%'`
            return rows.length
          },
          { timeout: 60_000 },
        )
        .toBe(1)
      await running
    },
    { timeout: 120_000 },
  )
}

test('a person of a deleted organization keeps the account', async () => {
  const { tenant, name } = await setUp()
  const user = await api.db.user.create({
    data: { name: 'Somebody', email: `${randomUUID()}@example.test`, emailVerified: true },
  })
  await api.db.membership.create({ data: { organizationId: tenant.organizationId, userId: user.id } })
  await api.db.roleGrant.create({
    data: { organizationId: tenant.organizationId, userId: user.id, role: 'owner' },
  })
  const cookie = await sessionCookie(api, user.id)
  await signedIn(0)
  await mutate(api, cookie, 'organization.askDeletion', { name })
  api.clock.advance(14 * dayMs)
  await job()
  api.clock.advance(edgesToldMs)
  await job()
  expect(await isThere(tenant.organizationId)).toBe(false)
  expect(await query(api, cookie, 'session.organizations')).toEqual([])
  expect(await query(api, cookie, 'session.access')).toMatchObject({ email: user.email })
})

test('whose account asks for codes gives password and code again, however fresh the sign-in is', async () => {
  const tenant = await createTenant(api, randomUUID())
  const person = await createPerson(api, tenant.organizationId, 'owner')
  const client = new AuthClient(api)
  await client.post('/sign-in/email', person)
  const { name } = await query<{ name: string }>(api, client.cookie, 'organization.get', {})
  const { body } = await client.post('/two-factor/enable', { password: person.password })
  const secret = new URL(String(body.totpURI)).searchParams.get('secret') ?? ''
  const code = () => totpOf(secret, Date.now())
  await client.post('/two-factor/verify-totp', { code: code() })
  await signedIn(0)
  const ask = () => call(client.cookie, 'organization.askDeletion', { name })
  const confirm = (input: object) => call(client.cookie, 'session.confirm', input)
  const { password } = person
  expect((await ask()).code).toBe('confirmation_needed')
  expect(await confirm({ password })).toMatchObject({
    code: 'invalid',
    text: expect.stringContaining('two-factor authentication'),
  })
  const wrong = String((Number(code()) + 1) % 1_000_000).padStart(6, '0')
  expect((await confirm({ password, code: wrong })).code).toBe('invalid')
  expect((await confirm({ password: 'not the one', code: code() })).code).toBe('invalid')
  expect((await ask()).code).toBe('confirmation_needed')
  expect((await confirm({ password, code: code() })).status).toBe(200)
  expect((await ask()).status).toBe(200)
  const failures = { objectName: person.email, action: 'account.confirmFailed' }
  expect(await api.db.auditEntry.count({ where: failures })).toBe(2)
})
