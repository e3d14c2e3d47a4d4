import { randomUUID } from 'node:crypto'
import { inOrganization } from '@bootfarm/db'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestApi, type TestApi } from '../../test/test-api.ts'
import { callProcedure, query } from '../../test/test-client.ts'
import { createTenant, sessionCookie, signInAs, type TestTenant } from '../../test/test-tenant.ts'
import { type AskedPlaces, authorise } from '../access/authorise.ts'
import { AppError } from '../errors/app-error.ts'
import { type Permission, permissionNames, type Role, roles } from '../rules/permissions.ts'
import type { PlaceKind } from '../rules/place.ts'
import { findSignedIn } from '../session/find-actor.ts'

interface Explained {
  placeName: string
  permissions: {
    permission: Permission
    allowed: boolean
    by: { role: Role; scope: { kind: string; name: string } }[]
    because: string
  }[]
}
interface RoleTable {
  roles: Role[]
  permissions: { permission: Permission; roles: Role[] }[]
}
interface Scope {
  farmId?: string
  siteId?: string
  collectionId?: string
}

let api: TestApi
let tenant: TestTenant
let owner: string
let otherSiteId: string
/** Every kind of object, by the name of its id. */
let objects: [string, PlaceKind, string][]

beforeAll(async () => {
  api = await startTestApi()
  tenant = await createTenant(api, 'own')
  owner = await signInAs(api, tenant.organizationId, 'owner')
  const { organizationId, farmId, siteId, collectionId, vdiskId, deviceIds } = tenant
  const { db, clock } = api
  const other = await db.site.create({ data: { organizationId, farmId, name: 'Beside', timeZone: 'UTC' } })
  otherSiteId = other.id
  const now = clock.now
  const edge = await db.edge.create({
    data: {
      organizationId,
      siteId,
      name: 'edge',
      publicKey: randomUUID(),
      arch: 'x86_64',
      agentVersion: '1',
      enrolledAt: now,
    },
  })
  const store = await db.store.create({ data: { organizationId, farmId, name: 'SSDs', createdAt: now } })
  const menu = await db.bootMenu.create({
    data: {
      organizationId,
      farmId,
      name: 'Menu',
      timeoutMs: 10_000,
      defaultPosition: 0,
      createdAt: now,
      updatedAt: now,
    },
  })
  const schedule = await db.schedule.create({
    data: {
      organizationId,
      farmId,
      siteId,
      name: 'Mornings',
      ratePerMinute: 10,
      kind: 'cron',
      cron: '30 6 * * *',
      timeZone: 'UTC',
      preparedUntil: now,
      createdAt: now,
      updatedAt: now,
    },
  })
  objects = [
    ['farmId', 'farm', farmId],
    ['siteId', 'site', siteId],
    ['siteId', 'site', otherSiteId],
    ['collectionId', 'collection', collectionId],
    ['deviceId', 'device', deviceIds[0] ?? ''],
    ['edgeId', 'edge', edge.id],
    ['vdiskId', 'vdisk', vdiskId],
    ['storeId', 'store', store.id],
    ['menuId', 'boot_menu', menu.id],
    ['scheduleId', 'schedule', schedule.id],
  ]
})
afterAll(() => api.close())

async function memberWith(...grants: { role: Role; scope: Scope }[]) {
  const { organizationId } = tenant
  const user = await api.db.user.create({ data: { name: 'A member', email: `${randomUUID()}@example.test` } })
  await api.db.membership.create({ data: { organizationId, userId: user.id } })
  const userId = user.id
  await api.db.roleGrant.createMany({
    data: grants.map(({ role, scope }) => ({ organizationId, userId, role, ...scope })),
  })
  return user
}

const explain = (userId: string, place: object = {}, cookie = owner) =>
  query<Explained>(api, cookie, 'member.explain', { userId, ...place })

const permissionIn = ({ permissions }: Explained, name: Permission) => {
  const found = permissions.find(({ permission }) => permission === name)
  if (!found) throw new Error(`no ${name}`)
  return found
}

/** Asks the database once where an object lies, however often the wall wants to know. */
function remembering<Db extends object>(db: Db): Db {
  const known = new Map<string, unknown>()
  return new Proxy(db, {
    get: (target, table) => ({
      findMany(asked: object) {
        const key = `${String(table)} ${JSON.stringify(asked)}`
        const rows = Reflect.get(target, table) as unknown as { findMany(asked: object): unknown }
        if (!known.has(key)) known.set(key, rows.findMany(asked))
        return known.get(key)
      },
    }),
  })
}

/** Returns the decision of the check in front of every procedure for a request of this person. */
async function allowedByTheWall(
  user: { id: string; name: string; email: string },
  places: AskedPlaces,
): Promise<Permission[]> {
  const token = randomUUID()
  const expiresAt = new Date(api.clock.read().getTime() + 3_600_000)
  await api.db.session.create({ data: { token, userId: user.id, expiresAt } })
  const context = { db: api.db, clock: api.clock.read }
  const actor = (await findSignedIn(context, { token, dueBeforeSeconds: 0 }))?.actor
  if (!actor) throw new Error('no member')
  return inOrganization(api.db, tenant.organizationId, async (transaction) => {
    const db = remembering(transaction)
    const allowed: Permission[] = []
    for (const permission of permissionNames)
      await authorise({ db, actor }, { permission }, places).then(
        () => allowed.push(permission),
        (error: unknown) => {
          if (!(error instanceof AppError)) throw error
        },
      )
    return allowed
  })
}

test.each(roles)('the explanation for %s matches the wall’s decision in every place', async (role) => {
  const { farmId, siteId, collectionId } = tenant
  const scopes = [{}, { farmId }, { siteId }, { collectionId }]
  let allowedCount = 0
  for (const scope of scopes) {
    const user = await memberWith({ role, scope })
    const targets: [object, AskedPlaces][] = [
      [{}, 'organization'],
      ...objects.map(([name, kind, id]): [object, AskedPlaces] => [{ [name]: id }, [{ kind, ids: [id] }]]),
    ]
    for (const [place, places] of targets) {
      const { permissions } = await explain(user.id, place)
      expect(permissions.map(({ permission }) => permission)).toEqual(permissionNames)
      const allowed = permissions.filter((one) => one.allowed).map(({ permission }) => permission)
      expect([scope, place, allowed]).toEqual([scope, place, await allowedByTheWall(user, places)])
      for (const one of permissions) expect(one.by).toHaveLength(one.allowed ? 1 : 0)
      allowedCount += allowed.length
    }
  }
  // Neither side refuses everything.
  expect(allowedCount).toBeGreaterThan(permissionNames.length)
})

test('it names the role that allows it, or the missing permission', async () => {
  const { siteId, collectionId, deviceIds } = tenant
  const user = await memberWith(
    { role: 'viewer', scope: {} },
    { role: 'operator', scope: { collectionId } },
    { role: 'image_manager', scope: { siteId: otherSiteId } },
  )
  const ofDevice = await explain(user.id, { deviceId: deviceIds[0] })
  expect(ofDevice.placeName).toBe('the device pc-01')
  expect(permissionIn(ofDevice, 'device.power')).toMatchObject({
    allowed: true,
    because: 'As operator of the collection Lab in Site of own.',
    by: [{ role: 'operator', scope: { kind: 'collection' } }],
  })
  expect(permissionIn(ofDevice, 'device.read').because).toBe(
    'As viewer of the whole organization, and as operator of the collection Lab in Site of own.',
  )
  expect(permissionIn(ofDevice, 'audit.read').because).toBe(
    'No role grants this here. It requires owner, admin or auditor.',
  )
  const ofSite = await explain(user.id, { siteId })
  expect(permissionIn(ofSite, 'device.power')).toMatchObject({
    allowed: false,
    by: [],
    because: 'As operator of the collection Lab in Site of own, which does not apply here.',
  })
})

test('an admin of a site has it explained there, and hears nothing of roles elsewhere', async () => {
  const { siteId, farmId } = tenant
  const admin = await memberWith({ role: 'admin', scope: { siteId } })
  const cookie = await sessionCookie(api, admin.id)
  const user = await memberWith(
    { role: 'viewer', scope: { siteId } },
    { role: 'operator', scope: { siteId: otherSiteId } },
  )
  const inSite = await explain(user.id, { siteId }, cookie)
  expect(permissionIn(inSite, 'device.power')).toMatchObject({ allowed: false })
  expect(JSON.stringify(inSite)).not.toContain('Beside')
  const codes = await Promise.all(
    [{}, { farmId }, { siteId: otherSiteId }, { siteId: randomUUID() }].map(async (place) => {
      const input = { userId: user.id, ...place }
      return (await callProcedure(api, { path: 'member.explain', type: 'query', input, cookie })).code
    }),
  )
  expect(codes).toEqual(['forbidden', 'forbidden', 'not_found', 'not_found'])
  const elsewhere = await memberWith({ role: 'viewer', scope: { siteId: otherSiteId } })
  const input = { userId: elsewhere.id, siteId }
  const hidden = await callProcedure(api, { path: 'member.explain', type: 'query', input, cookie })
  expect(hidden.code).toBe('not_found')
})

test('two objects at once are refused, and a person who is no member is not found', async () => {
  const { siteId, farmId } = tenant
  const { id: userId } = await memberWith({ role: 'viewer', scope: {} })
  const ask = (input: object) => callProcedure(api, { path: 'member.explain', type: 'query', input, cookie: owner })
  const both = await ask({ userId, siteId, farmId })
  expect([both.code, both.text.includes('choose one')]).toEqual(['invalid', true])
  expect((await ask({ userId: randomUUID(), siteId })).code).toBe('not_found')
})

test('the table of roles matches the policy', async () => {
  const viewer = await signInAs(api, tenant.organizationId, 'viewer')
  const table = await query<RoleTable>(api, viewer, 'member.roleTable')
  expect(table.roles).toEqual(roles)
  for (const role of table.roles) {
    const user = await memberWith({ role, scope: {} })
    const has = table.permissions.filter((one) => one.roles.includes(role)).map((one) => one.permission)
    expect(has).toEqual(await allowedByTheWall(user, 'organization'))
  }
})
